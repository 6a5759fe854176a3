/* Memory windows, on a card whose queue pairs talk to each other. Prints what differs; exits with how many did. */

#include "check.h"

#define QP_OPERATIONS (IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_RDMA_WRITE)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
/* Who binds, and its peer, which writes. */
static struct ibv_qp *qp, *peer;

static struct ibv_qp *queue_pair(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = QP_OPERATIONS,
		.pd = pd,
	};
	struct ibv_qp *made;

	MUST(made = ibv_create_qp_ex(context, &attr));
	return made;
}

static void reconnect(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
	MUST(ibv_modify_qp(peer, &attr, IBV_QP_STATE) == 0);
	connect_to(qp, peer->qp_num);
	connect_to(peer, qp->qp_num);
}

/* What a WRITE by the peer completes with. */
static int written(struct ibv_mr *local, char *to, uint32_t rkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = 8, .lkey = local->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)to, .rkey = rkey },
	}, *bad;

	MUST(ibv_post_send(peer, &wr, &bad) == 0);
	return completion(cq).status;
}

static void completes(uint64_t wr_id, int opcode, int status)
{
	struct ibv_wc wc = completion(cq);

	expect("wr_id", wc.wr_id, wr_id);
	expect("status", wc.status, status);
	if (status == IBV_WC_SUCCESS)
		expect("opcode", wc.opcode, opcode);
}

static struct ibv_mw_bind_info info(struct ibv_mr *mr, uint64_t length, unsigned int access)
{
	struct ibv_mw_bind_info bound = {
		.mr = mr, .addr = (uintptr_t)memory + 4096, .length = length, .mw_access_flags = access
	};
	return bound;
}

static void type_1(struct ibv_mr *mr)
{
	struct ibv_mw_bind bind = {
		.wr_id = 1, .send_flags = IBV_SEND_SIGNALED, .bind_info = info(mr, 64, IBV_ACCESS_REMOTE_WRITE)
	};
	struct ibv_mw *mw;
	uint32_t first;

	MUST(mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1));
	expect("type", mw->type, IBV_MW_TYPE_1);
	MUST(ibv_bind_mw(qp, mw, &bind) == 0);
	completes(1, IBV_WC_BIND_MW, IBV_WC_SUCCESS);
	first = mw->rkey;
	memcpy(memory, "ABCDEFGH", 8);
	expect("through the window", written(mr, memory + 4096 + 56, first), IBV_WC_SUCCESS);
	expect("what was written", memcmp(memory + 4096 + 56, "ABCDEFGH", 8), 0);
	MUST(ibv_bind_mw(qp, mw, &bind) == 0);
	completes(1, IBV_WC_BIND_MW, IBV_WC_SUCCESS);
	expect("another key", mw->rkey != first, 1);
	expect("with the key of before", written(mr, memory + 4096, first), IBV_WC_REM_ACCESS_ERR);
	reconnect();
	expect("with the new one", written(mr, memory + 4096, mw->rkey), IBV_WC_SUCCESS);
	uint32_t bound = mw->rkey;
	bind.bind_info = (struct ibv_mw_bind_info){ .length = 64 };
	REFUSED(ibv_bind_mw(qp, mw, &bind), EINVAL);
	struct ibv_pd *foreign = ibv_alloc_pd(mw->context);
	struct ibv_mr *other = ibv_reg_mr(foreign, mr->addr, mr->length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	MUST(foreign && other);
	bind.bind_info = info(other, 64, IBV_ACCESS_REMOTE_WRITE);
	REFUSED(ibv_bind_mw(qp, mw, &bind), EPERM);
	MUST(mw->rkey == bound && !ibv_dereg_mr(other) && !ibv_dealloc_pd(foreign));
	bind.bind_info = (struct ibv_mw_bind_info){ 0 };
	MUST(ibv_bind_mw(qp, mw, &bind) == 0);
	completes(1, IBV_WC_BIND_MW, IBV_WC_SUCCESS);
	expect("bound to nothing", written(mr, memory + 4096, mw->rkey), IBV_WC_REM_ACCESS_ERR);
	reconnect();
	/* One byte too long. */
	bind.bind_info = info(mr, 4097, IBV_ACCESS_REMOTE_READ);
	bind.send_flags = 0;
	MUST(ibv_bind_mw(qp, mw, &bind) == 0);
	completes(1, IBV_WC_BIND_MW, IBV_WC_MW_BIND_ERR);
	reconnect();
	REFUSED(ibv_dealloc_mw(mw), 0);
	REFUSED(ibv_dealloc_mw(mw), EINVAL);
}

static void type_2(struct ibv_mr *mr)
{
	struct ibv_send_wr wr = { .wr_id = 2, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_mw_bind bind = { .bind_info = info(mr, 64, IBV_ACCESS_REMOTE_WRITE) };
	struct ibv_recv_wr recv = { .wr_id = 9 }, *bad_recv;
	struct ibv_mw *mw;
	uint32_t key;

	MUST(mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2));
	REFUSED(ibv_bind_mw(qp, mw, &bind), EINVAL);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = key = ibv_inc_rkey((mw->rkey & ~0xff) | 0x11);
	wr.bind_mw.bind_info = bind.bind_info;
	MUST(ibv_post_send(qp, &wr, &bad) == 0);
	completes(2, IBV_WC_BIND_MW, IBV_WC_SUCCESS);
	expect("through the window", written(mr, memory + 4096, key), IBV_WC_SUCCESS);
	wr.opcode = IBV_WR_LOCAL_INV;
	wr.invalidate_rkey = key;
	MUST(ibv_post_send(qp, &wr, &bad) == 0);
	completes(2, IBV_WC_LOCAL_INV, IBV_WC_SUCCESS);
	expect("once it is invalid", written(mr, memory + 4096, key), IBV_WC_REM_ACCESS_ERR);
	reconnect();
	/* In a batch: bound, invalidated, bound under another key. */
	ibv_wr_start(ex);
	ex->wr_id = 3;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(ex, mw, key, &bind.bind_info);
	ex->wr_id = 4;
	ibv_wr_local_inv(ex, key);
	ex->wr_id = 5;
	ibv_wr_bind_mw(ex, mw, key + 1, &bind.bind_info);
	MUST(ibv_wr_complete(ex) == 0);
	completes(3, IBV_WC_BIND_MW, IBV_WC_SUCCESS);
	completes(4, IBV_WC_LOCAL_INV, IBV_WC_SUCCESS);
	completes(5, IBV_WC_BIND_MW, IBV_WC_SUCCESS);
	expect("through the window", written(mr, memory + 4096, key + 1), IBV_WC_SUCCESS);
	/* The peer ends it. */
	MUST(ibv_post_recv(qp, &recv, &bad_recv) == 0);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.send_flags = 0;
	wr.invalidate_rkey = key + 1;
	MUST(ibv_post_send(peer, &wr, &bad) == 0);
	completes(9, IBV_WC_RECV, IBV_WC_SUCCESS);
	expect("once the peer ended it", written(mr, memory + 4096, key + 1), IBV_WC_REM_ACCESS_ERR);
	reconnect();
	/* Of the key only the lowest 8 bits are chosen. */
	wr.wr_id = 7;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.opcode = IBV_WR_BIND_MW;
	wr.bind_mw.rkey = 0xba;
	MUST(ibv_post_send(qp, &wr, &bad) == 0);
	completes(7, IBV_WC_BIND_MW, IBV_WC_SUCCESS);
	key = (mw->rkey & ~0xff) | 0xba;
	expect("through the window", written(mr, memory + 4096, key), IBV_WC_SUCCESS);
	/* No key of the queue pair. */
	wr.opcode = IBV_WR_LOCAL_INV;
	wr.invalidate_rkey = key ^ 1;
	MUST(ibv_post_send(qp, &wr, &bad) == 0);
	completes(7, IBV_WC_LOCAL_INV, IBV_WC_MW_BIND_ERR);
	reconnect();
	REFUSED(ibv_dealloc_mw(mw), 0);
}

int main(void)
{
	struct ibv_device_attr device;
	struct ibv_mr *mr;

	context = open_device();
	MUST(ibv_query_device(context, &device) == 0);
	expect("type 2B", device.device_cap_flags & (IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B),
	       IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	expect("windows", device.max_mw > 0, 1);
	MUST(pd = ibv_alloc_pd(context));
	MUST(cq = ibv_create_cq(context, 16, NULL, NULL, 0));
	MUST(mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	NO_POINTER(ibv_alloc_mw(pd, 3), EINVAL);
	qp = queue_pair();
	peer = queue_pair();
	connect_to(qp, peer->qp_num);
	connect_to(peer, qp->qp_num);
	type_1(mr);
	type_2(mr);
	REFUSED(ibv_destroy_qp(qp), 0);
	REFUSED(ibv_destroy_qp(peer), 0);
	REFUSED(ibv_destroy_cq(cq), 0);
	REFUSED(ibv_dereg_mr(mr), 0);
	REFUSED(ibv_dealloc_pd(pd), 0);
	REFUSED(ibv_close_device(context), 0);
	return wrong;
}
