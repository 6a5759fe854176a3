/* Extended completion queues and queue pairs, on a card whose queue pairs talk to each other. Prints what differs; exits with
 * how many did. */

#include "check.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <sys/mman.h>

#define QKEY 0x1234
#define GRH 40

/* The next completion is this one; it stays at hand until `ibv_end_poll`. */
static void next(struct ibv_cq_ex *cq, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int found = ENOENT;

	for (int i = 0; i < POLLS && found == ENOENT; i++)
		found = ibv_start_poll(cq, &attr);
	MUST(found == 0);
	expect("status", cq->status, IBV_WC_SUCCESS);
	expect("wr_id", cq->wr_id, wr_id);
	expect("opcode", ibv_wc_read_opcode(cq), opcode);
}

static void done(struct ibv_cq_ex *cq, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	next(cq, wr_id, opcode);
	ibv_end_poll(cq);
}

static struct ibv_qp_ex *queue_pair(struct ibv_context *context, struct ibv_pd *pd, struct ibv_cq_ex *cq,
				    enum ibv_qp_type type, uint64_t operations)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.cap = { .max_send_wr = 5, .max_recv_wr = 5, .max_send_sge = 2, .max_recv_sge = 1,
			 .max_inline_data = 64 },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = operations,
		.pd = pd,
	};
	struct ibv_qp_ex *qp;
	struct ibv_qp *base;

	MUST(base = ibv_create_qp_ex(context, &attr));
	MUST(attr.cap.max_send_wr >= 5 && attr.cap.max_recv_wr == 8);
	MUST(qp = ibv_qp_to_qp_ex(base));
	return qp;
}

static void receive(struct ibv_qp_ex *qp, struct ibv_mr *mr, uint64_t wr_id, int at, int bytes)
{
	struct ibv_sge sge = { .addr = (uintptr_t)memory + at, .length = bytes, .lkey = mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST(ibv_post_recv(&qp->qp_base, &recv, &bad) == 0);
}

static void signaled(struct ibv_qp_ex *qp, uint64_t wr_id)
{
	qp->wr_id = wr_id;
	qp->wr_flags = IBV_SEND_SIGNALED;
}

/* Five operations in a batch, from parts of the memory to others. */
static void batch(struct ibv_cq_ex *cq, struct ibv_qp_ex *qp, struct ibv_qp_ex *peer, struct ibv_mr *mr)
{
	uintptr_t base = (uintptr_t)memory;
	struct ibv_sge pieces[2] = {
		{ .addr = base, .length = 3, .lkey = mr->lkey },
		{ .addr = base + 3, .length = 5, .lkey = mr->lkey },
	};
	struct ibv_data_buf inlined[2] = { { .addr = "in", .length = 2 }, { .addr = "line", .length = 4 } };
	uint64_t value = 40;

	memcpy(memory, "ABCDEFGH", 8);
	memcpy(memory + 512, &value, 8);
	receive(peer, mr, 21, 1024, 8);
	receive(peer, mr, 22, 1088, 64);
	ibv_wr_start(qp);
	qp->wr_id = 10;
	qp->wr_flags = 0;
	ibv_wr_rdma_write(qp, mr->rkey, base + 256);
	ibv_wr_set_sge_list(qp, 2, pieces);
	signaled(qp, 11);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, mr->lkey, base, 8);
	signaled(qp, 12);
	ibv_wr_rdma_write_imm(qp, mr->rkey, base + 320, htonl(0xabcd));
	ibv_wr_set_inline_data_list(qp, 2, inlined);
	signaled(qp, 13);
	ibv_wr_rdma_read(qp, mr->rkey, base + 256);
	ibv_wr_set_sge(qp, mr->lkey, base + 384, 8);
	signaled(qp, 14);
	ibv_wr_atomic_fetch_add(qp, mr->rkey, base + 512, 2);
	ibv_wr_set_sge(qp, mr->lkey, base + 576, 8);
	MUST(ibv_wr_complete(qp) == 0);

	struct ibv_poll_cq_attr attr = { 0 };
	int seen = 0;
	for (int i = 0; i < POLLS && seen != 0x7e; i++) {
		int found = ibv_start_poll(cq, &attr);

		if (found == ENOENT)
			continue;
		for (; found == 0; found = ibv_next_poll(cq)) {
			expect("status", cq->status, IBV_WC_SUCCESS);
			expect("queue pair", ibv_wc_read_qp_num(cq),
			       (cq->wr_id < 20 ? qp : peer)->qp_base.qp_num);
			if (cq->wr_id == 22) {
				expect("immediate data", ntohl(ibv_wc_read_imm_data(cq)), 0xabcd);
				expect("flags", ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
				expect("bytes", ibv_wc_read_byte_len(cq), 6);
			}
			seen |= cq->wr_id < 20 ? 1 << (cq->wr_id - 10) : 1 << (cq->wr_id - 16);
		}
		expect("end of a poll", found, ENOENT);
		ibv_end_poll(cq);
	}
	expect("completions", seen, 0x7e);
	expect("WRITE of two pieces", memcmp(memory + 256, "ABCDEFGH", 8), 0);
	expect("SEND", memcmp(memory + 1024, "ABCDEFGH", 8), 0);
	expect("inline data", memcmp(memory + 320, "inline", 6), 0);
	expect("READ", memcmp(memory + 384, "ABCDEFGH", 8), 0);
	memcpy(&value, memory + 512, 8);
	expect("sum", value, 42);
	memcpy(&value, memory + 576, 8);
	expect("value before", value, 40);
}

/* What is given up is not posted; what comes after it is. */
static void given_up(struct ibv_cq_ex *cq, struct ibv_qp_ex *qp, struct ibv_mr *mr)
{
	uint64_t value = 7;

	memcpy(memory + 640, &value, 8);
	ibv_wr_start(qp);
	signaled(qp, 30);
	ibv_wr_rdma_write(qp, mr->rkey, (uintptr_t)memory + 640);
	ibv_wr_set_inline_data(qp, "lost", 4);
	ibv_wr_abort(qp);
	ibv_wr_start(qp);
	signaled(qp, 31);
	ibv_wr_atomic_cmp_swp(qp, mr->rkey, (uintptr_t)memory + 640, 7, 8);
	ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory + 704, 8);
	MUST(ibv_wr_complete(qp) == 0);
	done(cq, 31, IBV_WC_COMP_SWAP);
	memcpy(&value, memory + 640, 8);
	expect("swapped", value, 8);
}

/* In RTS a queue pair learns other rights of its peer: READs are refused after that, WRITEs are not. */
static void rights(struct ibv_cq_ex *cq, struct ibv_qp_ex *qp, struct ibv_qp_ex *peer, struct ibv_mr *mr)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .min_rnr_timer = 1 };
	struct ibv_qp_init_attr init;

	REFUSED(ibv_modify_qp(&peer->qp_base, &attr, IBV_QP_PATH_MTU), EINVAL);
	attr.min_rnr_timer = 99;
	REFUSED(ibv_modify_qp(&peer->qp_base, &attr, IBV_QP_MIN_RNR_TIMER), EINVAL);
	attr.min_rnr_timer = 1;
	REFUSED(ibv_modify_qp(&peer->qp_base, &attr, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER), 0);
	MUST(ibv_query_qp(&peer->qp_base, &attr, IBV_QP_ACCESS_FLAGS, &init) == 0);
	expect("state", attr.qp_state, IBV_QPS_RTS);
	expect("rights", attr.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
	expect("RNR timer", attr.min_rnr_timer, 1);
	ibv_wr_start(qp);
	signaled(qp, 60);
	ibv_wr_rdma_write(qp, mr->rkey, (uintptr_t)memory + 768);
	ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 8);
	MUST(ibv_wr_complete(qp) == 0);
	done(cq, 60, IBV_WC_RDMA_WRITE);
	ibv_wr_start(qp);
	signaled(qp, 61);
	ibv_wr_rdma_read(qp, mr->rkey, (uintptr_t)memory);
	ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory + 832, 8);
	MUST(ibv_wr_complete(qp) == 0);
	expect("READ without the right", completion(ibv_cq_ex_to_cq(cq)).status, IBV_WC_REM_INV_REQ_ERR);
	/* Both ends start anew. */
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	MUST(ibv_modify_qp(&qp->qp_base, &reset, IBV_QP_STATE) == 0);
	MUST(ibv_modify_qp(&peer->qp_base, &reset, IBV_QP_STATE) == 0);
	connect_to(&qp->qp_base, peer->qp_base.qp_num);
	connect_to(&peer->qp_base, qp->qp_base.qp_num);
}

/* The key of a region stays while its rights and its memory change. */
static void registered_anew(struct ibv_cq_ex *cq, struct ibv_qp_ex *qp, struct ibv_mr *mr, struct ibv_pd *pd)
{
	struct ibv_mr *other;
	uint32_t key;

	MUST(other = ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE));
	key = other->rkey;
	MUST(ibv_rereg_mr(other, IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + 4096,
			  4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) == 0);
	expect("key", other->rkey, key);
	expect("address", (char *)other->addr - memory, 4096);
	ibv_wr_start(qp);
	signaled(qp, 40);
	ibv_wr_rdma_write(qp, key, (uintptr_t)memory + 4096);
	ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 8);
	MUST(ibv_wr_complete(qp) == 0);
	done(cq, 40, IBV_WC_RDMA_WRITE);
	expect("WRITE to what was registered anew", memcmp(memory + 4096, "ABCDEFGH", 8), 0);
	/* Its memory of before is out of reach. */
	ibv_wr_start(qp);
	signaled(qp, 41);
	ibv_wr_rdma_write(qp, key, (uintptr_t)memory);
	ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 8);
	MUST(ibv_wr_complete(qp) == 0);
	expect("WRITE to what was registered before", completion(ibv_cq_ex_to_cq(cq)).status, IBV_WC_REM_ACCESS_ERR);
	REFUSED(ibv_dereg_mr(other), 0);
}

/* Completions that wait go with the queue into another size, and others follow them. */
static void resized(struct ibv_cq_ex *extended, struct ibv_qp_ex *qp, struct ibv_mr *mr)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(extended);
	int sizes[] = { 64, 4, 5, 256 }, id = 60;

	for (int i = 0; i < 4; i++) {
		for (int j = 0; j < 3; j++) {
			ibv_wr_start(qp);
			signaled(qp, id + j);
			ibv_wr_rdma_write(qp, mr->rkey, (uintptr_t)memory + 3072);
			ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory + 64, 8);
			MUST(ibv_wr_complete(qp) == 0);
		}
		if (i == 1) {
			/* The other two wait for sure when the last of them is there. */
			done(extended, id++, IBV_WC_RDMA_WRITE);
			done(extended, id++, IBV_WC_RDMA_WRITE);
		}
		REFUSED(ibv_resize_cq(cq, sizes[i]), 0);
		expect("size", cq->cqe, sizes[i] == 5 ? 8 : sizes[i]);
		for (int j = i == 1 ? 2 : 0; j < 3; j++)
			done(extended, id++, IBV_WC_RDMA_WRITE);
	}
}

static void datagram(struct ibv_context *context, struct ibv_pd *pd, struct ibv_cq_ex *cq, struct ibv_mr *mr)
{
	struct ibv_qp_ex *qp = queue_pair(context, pd, cq, IBV_QPT_UD, IBV_QP_EX_WITH_SEND_WITH_IMM);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_ah_attr path = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = 1 } };
	struct ibv_ah *ah;

	MUST(ibv_modify_qp(&qp->qp_base, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0);
	attr.qp_state = IBV_QPS_RTR;
	MUST(ibv_modify_qp(&qp->qp_base, &attr, IBV_QP_STATE) == 0);
	attr.qp_state = IBV_QPS_RTS;
	MUST(ibv_modify_qp(&qp->qp_base, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
	MUST(ibv_query_gid(context, 1, 1, &path.grh.dgid) == 0);
	MUST(ah = ibv_create_ah(pd, &path));
	receive(qp, mr, 51, 2048, GRH + 8);
	ibv_wr_start(qp);
	qp->wr_id = 50;
	qp->wr_flags = 0;
	ibv_wr_send_imm(qp, htonl(5));
	ibv_wr_set_ud_addr(qp, ah, qp->qp_base.qp_num, QKEY);
	ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 8);
	MUST(ibv_wr_complete(qp) == 0);
	next(cq, 51, IBV_WC_RECV);
	expect("sender", ibv_wc_read_src_qp(cq), qp->qp_base.qp_num);
	expect("flags of a datagram", ibv_wc_read_wc_flags(cq), IBV_WC_GRH | IBV_WC_WITH_IMM);
	ibv_end_poll(cq);
	expect("datagram", memcmp(memory + 2048 + GRH, "ABCDEFGH", 8), 0);
	REFUSED(ibv_destroy_qp(&qp->qp_base), 0);
	REFUSED(ibv_destroy_ah(ah), 0);
}

/* A rate limit in kb/s, which the card has in Mb/s. */
static void limited(struct ibv_cq_ex *cq, struct ibv_qp_ex *qp, struct ibv_mr *mr,
		    const struct ibv_packet_pacing_caps *caps)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 100000 };

	expect("lowest limit", caps->qp_rate_limit_min, 1000);
	expect("highest limit", caps->qp_rate_limit_max, 1048575000);
	MUST(caps->supported_qpts & 1 << IBV_QPT_RC);
	REFUSED(ibv_modify_qp_rate_limit(&qp->qp_base, &limit), 0);
	ibv_wr_start(qp);
	qp->wr_id = 90;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qp, mr->rkey, (uintptr_t)memory + 256);
	ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 64);
	MUST(ibv_wr_complete(qp) == 0);
	done(cq, 90, IBV_WC_RDMA_WRITE);
	limit.rate_limit = 999;
	REFUSED(ibv_modify_qp_rate_limit(&qp->qp_base, &limit), EINVAL);
	limit.rate_limit = caps->qp_rate_limit_max + 1000;
	REFUSED(ibv_modify_qp_rate_limit(&qp->qp_base, &limit), EINVAL);
	limit = (struct ibv_qp_rate_limit_attr){ .rate_limit = 1000, .max_burst_sz = 4096 };
	REFUSED(ibv_modify_qp_rate_limit(&qp->qp_base, &limit), EINVAL);
	limit = (struct ibv_qp_rate_limit_attr){ .rate_limit = 0 };
	REFUSED(ibv_modify_qp_rate_limit(&qp->qp_base, &limit), 0);
}

/* The first bytes of a structure, as an older header has it: behind them there is no memory. */
static void *older(const void *attr, size_t bytes)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(pages != MAP_FAILED);
	MUST(mprotect(pages + page, page, PROT_NONE) == 0);
	return memcpy(pages + page - bytes, attr, bytes);
}

static void older_headers(struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;

	MUST(cq = ibv_create_cq_ex(context, older(&cq_attr, offsetof(struct ibv_cq_init_attr_ex, parent_domain))));
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	MUST(qp = ibv_create_qp_ex(context, older(&attr, offsetof(struct ibv_qp_init_attr_ex, xrcd))));
	REFUSED(ibv_destroy_qp(qp), 0);
	REFUSED(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

int main(void)
{
	struct ibv_context *context = open_device();
	struct ibv_parent_domain_init_attr domain = { 0 };
	struct ibv_cq_init_attr_ex attr = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_device_attr_ex device;
	struct ibv_pd *pd, *parent;
	struct ibv_cq_ex *cq;
	struct ibv_mr *mr;

	MUST(ibv_query_device_ex(context, NULL, &device) == 0);
	expect("ports", device.phys_port_cnt_ex, 1);
	expect("device memory", device.max_dm_size, 0);
	MUST(pd = ibv_alloc_pd(context));
	domain.pd = pd;
	MUST(parent = ibv_alloc_parent_domain(context, &domain));
	MUST(cq = ibv_create_cq_ex(context, &attr));
	MUST(mr = ibv_reg_mr(pd, memory, sizeof memory,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				     IBV_ACCESS_REMOTE_ATOMIC));
	uint64_t operations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			      IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
			      IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
	struct ibv_qp_ex *qp = queue_pair(context, parent, cq, IBV_QPT_RC, operations);
	struct ibv_qp_ex *peer = queue_pair(context, pd, cq, IBV_QPT_RC, operations);
	connect_to(&qp->qp_base, peer->qp_base.qp_num);
	connect_to(&peer->qp_base, qp->qp_base.qp_num);
	batch(cq, qp, peer, mr);
	limited(cq, qp, mr, &device.packet_pacing_caps);
	given_up(cq, qp, mr);
	datagram(context, pd, cq, mr);
	rights(cq, qp, peer, mr);
	resized(cq, qp, mr);
	registered_anew(cq, qp, mr, pd);
	older_headers(context, pd);
	REFUSED(ibv_destroy_qp(&qp->qp_base), 0);
	REFUSED(ibv_destroy_qp(&peer->qp_base), 0);
	REFUSED(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	REFUSED(ibv_dereg_mr(mr), 0);
	REFUSED(ibv_dealloc_pd(parent), 0);
	REFUSED(ibv_dealloc_pd(pd), 0);
	REFUSED(ibv_close_device(context), 0);
	return wrong;
}
