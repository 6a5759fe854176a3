/* States that a queue pair reaches by itself, and what is flushed in ERR. Prints what differs; exits with how many did. */

#include "check.h"

#include <pthread.h>

static int state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	MUST(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
	expect("state of the structure", qp->state, attr.qp_state);
	return attr.qp_state;
}

static int to(struct ibv_qp *qp, int state, int mask, int from)
{
	struct ibv_qp_attr attr = { .qp_state = state, .cur_qp_state = from, .port_num = 1, .qkey = 5 };

	return ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE);
}

static unsigned int qkey = 5;

static int post(struct ibv_qp *qp, struct ibv_ah *ah, unsigned int lkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = 8, .lkey = lkey };
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
				    .send_flags = IBV_SEND_SIGNALED }, *bad;

	send.wr.ud.ah = ah;
	send.wr.ud.remote_qpn = qp->qp_num;
	send.wr.ud.remote_qkey = qkey;
	return ibv_post_send(qp, &send, &bad);
}

static void receive(struct ibv_qp *qp)
{
	struct ibv_recv_wr recv = {}, *bad;

	MUST(ibv_post_recv(qp, &recv, &bad) == 0);
}

/* A queue pair for datagrams, in RTS. */
static struct ibv_qp *datagrams(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = qp_attr(cq);
	struct ibv_qp *qp;

	init.qp_type = IBV_QPT_UD;
	MUST(qp = ibv_create_qp(pd, &init));
	MUST(to(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0) == 0);
	MUST(to(qp, IBV_QPS_RTR, 0, 0) == 0);
	MUST(to(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN, 0) == 0);
	return qp;
}

/* The card's own address. */
static struct ibv_ah *own_address(struct ibv_pd *pd)
{
	struct ibv_ah_attr path = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = 1 } };
	struct ibv_ah *ah;

	MUST(ibv_query_gid(pd->context, 1, 1, &path.grh.dgid) == 0);
	MUST(ah = ibv_create_ah(pd, &path));
	return ah;
}

/* A bad request ends the send queue of datagrams alone, and the program may start it again. */
static void send_queue_error(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_mr *mr)
{
	struct ibv_qp *qp = datagrams(pd, cq);
	struct ibv_ah *ah = own_address(pd);

	MUST(post(qp, ah, mr->lkey ^ 0xff) == 0);
	expect("no such key", completion(cq).status, IBV_WC_LOC_PROT_ERR);
	expect("state", state(qp), IBV_QPS_SQE);
	MUST(post(qp, ah, mr->lkey) == 0);
	expect("flushed", completion(cq).status, IBV_WC_WR_FLUSH_ERR);
	REFUSED(to(qp, IBV_QPS_SQD, 0, 0), EINVAL);
	REFUSED(to(qp, IBV_QPS_RTS, IBV_QP_CUR_STATE, IBV_QPS_RTS), EINVAL);
	REFUSED(to(qp, IBV_QPS_RTS, IBV_QP_CUR_STATE | IBV_QP_QKEY, IBV_QPS_SQE), 0);
	expect("state", state(qp), IBV_QPS_RTS);
	MUST(post(qp, ah, mr->lkey) == 0);
	expect("sent again", completion(cq).status, IBV_WC_SUCCESS);
	REFUSED(to(qp, IBV_QPS_SQD, 0, 0), 0);
	REFUSED(to(qp, IBV_QPS_RTS, 0, 0), 0);
	REFUSED(ibv_destroy_qp(qp), 0);
	REFUSED(ibv_destroy_ah(ah), 0);
}

/* A queue pair whose peer ends the connection is in ERR, and stays there. */
static void broken(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_mr *mr)
{
	struct ibv_qp_init_attr init = qp_attr(cq);
	struct ibv_qp *qp;

	MUST(qp = ibv_create_qp(pd, &init));
	connect_to(qp, qp->qp_num);
	struct ibv_qp_attr path = { .path_mig_state = IBV_MIG_MIGRATED };
	REFUSED(ibv_modify_qp(qp, &path, IBV_QP_PATH_MIG_STATE), 0);
	path.path_mig_state = IBV_MIG_REARM;
	REFUSED(ibv_modify_qp(qp, &path, IBV_QP_PATH_MIG_STATE), EINVAL);
	MUST(post(qp, NULL, mr->lkey ^ 0xff) == 0);
	expect("no such key", completion(cq).status, IBV_WC_LOC_PROT_ERR);
	REFUSED(to(qp, IBV_QPS_SQD, 0, 0), EINVAL);
	expect("state", state(qp), IBV_QPS_ERR);
	REFUSED(to(qp, IBV_QPS_RTS, 0, 0), EINVAL);
	/* Where the program names the state that it is in, this is asked for. */
	REFUSED(to(qp, IBV_QPS_RESET, IBV_QP_CUR_STATE, IBV_QPS_ERR), 0);
	connect_to(qp, qp->qp_num);
	MUST(post(qp, NULL, mr->lkey ^ 0xff) == 0);
	expect("no such key", completion(cq).status, IBV_WC_LOC_PROT_ERR);
	REFUSED(to(qp, IBV_QPS_RESET, IBV_QP_CUR_STATE, IBV_QPS_RTS), EINVAL);
	REFUSED(to(qp, IBV_QPS_RESET, IBV_QP_CUR_STATE, IBV_QPS_ERR), 0);
	REFUSED(ibv_destroy_qp(qp), 0);
}

/* A change of state that is refused gives the peer no rights. */
static void refused(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = qp_attr(cq);
	struct ibv_mr *mr;
	struct ibv_qp *qp, *peer;

	MUST(mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	MUST(qp = ibv_create_qp(pd, &init));
	MUST(peer = ibv_create_qp(pd, &init));
	connect_to(peer, qp->qp_num);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qp_num,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .max_rd_atomic = 255, .min_rnr_timer = 99,
		.timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = 1, .hop_limit = 1 } },
	};
	int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	int rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		  IBV_QP_MAX_QP_RD_ATOMIC;

	MUST(ibv_query_gid(pd->context, 1, 1, &attr.ah_attr.grh.dgid) == 0);
	MUST(to(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0) == 0);
	REFUSED(ibv_modify_qp(qp, &attr, rtr | IBV_QP_ACCESS_FLAGS), EINVAL);
	attr.min_rnr_timer = 12;
	REFUSED(ibv_modify_qp(qp, &attr, rtr), 0);
	attr.qp_state = IBV_QPS_RTS;
	REFUSED(ibv_modify_qp(qp, &attr, rts | IBV_QP_ACCESS_FLAGS), EINVAL);

	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = 8, .lkey = mr->lkey };
	struct ibv_send_wr write = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
				     .send_flags = IBV_SEND_SIGNALED }, *bad;
	write.wr.rdma.remote_addr = (uintptr_t)memory;
	write.wr.rdma.rkey = mr->rkey;
	MUST(ibv_post_send(peer, &write, &bad) == 0);
	expect("write without a right", completion(cq).status, IBV_WC_REM_INV_REQ_ERR);
	REFUSED(ibv_destroy_qp(peer), 0);
	REFUSED(ibv_destroy_qp(qp), 0);
	REFUSED(ibv_dereg_mr(mr), 0);
}

/* Times that the Q_Key changes while datagrams are sent. */
#define CHANGES 200

static volatile int all_changed;

static void *change_qkey(void *qp)
{
	for (int i = 0; i < CHANGES; i++) {
		struct ibv_qp_attr attr = { .qkey = i };

		MUST(ibv_modify_qp(qp, &attr, IBV_QP_QKEY) == 0);
	}
	all_changed = 1;
	return NULL;
}

/* One thread sends with the Q_Key of the queue pair, which the other changes. */
static void own_qkey(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_mr *mr)
{
	struct ibv_qp *qp = datagrams(pd, cq);
	pthread_t thread;

	qkey = 0x80000000; /* the queue pair's own */
	alarm(60);
	MUST(pthread_create(&thread, NULL, change_qkey, qp) == 0);
	/* One without address is refused after its Q_Key was looked at, and takes no room. */
	while (!all_changed)
		REFUSED(post(qp, NULL, mr->lkey), EINVAL);
	MUST(pthread_join(thread, NULL) == 0);
	alarm(0);
	REFUSED(ibv_destroy_qp(qp), 0);
}

/* What is posted to a queue pair that never was in RTS completes where it is to. */
static void flushed(struct ibv_pd *pd, struct ibv_cq *first, struct ibv_mr *mr)
{
	struct ibv_cq *cq;

	MUST(cq = ibv_create_cq(pd->context, 8, NULL, NULL, 0));
	for (int i = 0; i < 300; i++) {
		struct ibv_qp_init_attr init = qp_attr(i % 2 ? cq : first);
		struct ibv_qp *qp;

		MUST(qp = ibv_create_qp(pd, &init));
		if (i % 2 == 0) {
			connect_to(qp, qp->qp_num);
		} else {
			MUST(to(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
				0) == 0);
			receive(qp);
			receive(qp);
			MUST(to(qp, IBV_QPS_ERR, 0, 0) == 0);
			MUST(post(qp, NULL, mr->lkey) == 0);
			receive(qp);
			for (int n = 0; n < 4; n++)
				expect("flushed", completion(cq).status, IBV_WC_WR_FLUSH_ERR);
		}
		REFUSED(ibv_destroy_qp(qp), 0);
	}
	REFUSED(ibv_destroy_cq(cq), 0);
}

int main(void)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;

	MUST(pd = ibv_alloc_pd(context));
	MUST(cq = ibv_create_cq(context, 8, NULL, NULL, 0));
	MUST(mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE));
	send_queue_error(pd, cq, mr);
	broken(pd, cq, mr);
	refused(pd, cq);
	flushed(pd, cq, mr);
	own_qkey(pd, cq, mr);
	REFUSED(ibv_dereg_mr(mr), 0);
	REFUSED(ibv_destroy_cq(cq), 0);
	REFUSED(ibv_dealloc_pd(pd), 0);
	REFUSED(ibv_close_device(context), 0);
	return wrong;
}
