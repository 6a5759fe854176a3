/* Calls that must be refused, each with the error number it must have. Prints what differs; exits with how many did. */

#include "check.h"

#include <signal.h>
#include <sys/wait.h>

static void devices(struct ibv_context *context)
{
	union ibv_gid gid;
	struct ibv_port_attr port;
	__be16 pkey;

	MINUS_ONE(ibv_query_gid(context, 1, 100, &gid), EINVAL);
	MINUS_ONE(ibv_query_gid(context, 1, -1, &gid), EINVAL);
	MINUS_ONE(ibv_query_gid(context, 2, 0, &gid), EINVAL);
	MINUS_ONE(ibv_query_pkey(context, 1, 1, &pkey), EINVAL);
	REFUSED(ibv_query_port(context, 2, &port), EINVAL);
	NO_POINTER(ibv_open_device((struct ibv_device *)memory), EINVAL);
	NO_POINTER(ibv_alloc_pd((struct ibv_context *)memory), EINVAL);
	NO_POINTER(ibv_import_device(0), EOPNOTSUPP);
}

static void regions(struct ibv_pd *pd)
{
	int own = IBV_ACCESS_LOCAL_WRITE;
	struct ibv_mr *mr;

	NO_POINTER(ibv_reg_mr(pd, memory, 0, own), EINVAL);
	NO_POINTER(ibv_reg_mr(pd, (void *)4096, 4096, own), EFAULT);
	NO_POINTER(ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	NO_POINTER(ibv_reg_mr(pd, memory, 4096, own | IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
	NO_POINTER(ibv_reg_mr_iova(pd, memory, 4096, 0, own), EOPNOTSUPP);
	NO_POINTER(ibv_reg_mr(NULL, memory, 4096, own), EINVAL);
	NO_POINTER(ibv_alloc_mw(pd, 0), EINVAL);
	NO_POINTER(ibv_alloc_mw(pd, 3), EINVAL);
	MUST(mr = ibv_reg_mr(pd, memory, sizeof memory, own));
	MINUS_ONE(ibv_rereg_mr(mr, 1 << 3, pd, NULL, 0, own), EINVAL);
	MINUS_ONE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, (void *)memory, NULL, 0, 0), EINVAL);
	MINUS_ONE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, 0, 0), EINVAL);
	MINUS_ONE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)4096, 4096, 0), EFAULT);
	MINUS_ONE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	MINUS_ONE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
	REFUSED(ibv_dealloc_pd(pd), EBUSY);
	REFUSED(ibv_dereg_mr(mr), 0);
	REFUSED(ibv_dereg_mr(mr), EINVAL);
	MINUS_ONE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, own), EINVAL);
}

static void extended(struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_parent_domain_init_attr domain = { .pd = (void *)memory };
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 0 };
	struct ibv_poll_cq_attr poll = { .comp_mask = 1 };
	struct ibv_cq_ex *cq;
	struct ibv_pd *parent;

	NO_POINTER(ibv_alloc_parent_domain(context, &domain), EINVAL);
	domain.pd = pd;
	domain.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	NO_POINTER(ibv_alloc_parent_domain(context, &domain), EOPNOTSUPP);
	domain.comp_mask = 0;
	MUST(parent = ibv_alloc_parent_domain(context, &domain));
	REFUSED(ibv_dealloc_pd(pd), EBUSY);
	REFUSED(ibv_dealloc_pd(parent), 0);

	NO_POINTER(ibv_create_cq_ex(context, &cq_attr), EINVAL);
	cq_attr.cqe = 8;
	cq_attr.comp_vector = 1;
	NO_POINTER(ibv_create_cq_ex(context, &cq_attr), EINVAL);
	cq_attr.comp_vector = 0;
	cq_attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	NO_POINTER(ibv_create_cq_ex(context, &cq_attr), EOPNOTSUPP);
	cq_attr.wc_flags = IBV_WC_STANDARD_FLAGS;
	cq_attr.comp_mask = 1 << 7;
	NO_POINTER(ibv_create_cq_ex(context, &cq_attr), EOPNOTSUPP);
	cq_attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	cq_attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	NO_POINTER(ibv_create_cq_ex(context, &cq_attr), EOPNOTSUPP);
	cq_attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	cq_attr.parent_domain = (void *)memory;
	NO_POINTER(ibv_create_cq_ex(context, &cq_attr), EINVAL);
	cq_attr.comp_mask = 0;
	MUST(cq = ibv_create_cq_ex(context, &cq_attr));
	REFUSED(ibv_start_poll(cq, &poll), EINVAL);
	poll.comp_mask = 0;
	REFUSED(ibv_start_poll(cq, &poll), ENOENT);
	REFUSED(ibv_next_poll(cq), EINVAL);
	ibv_end_poll(cq);
	expect("bytes of no completion", ibv_wc_read_byte_len(cq), 0);

	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
		.pd = (void *)memory,
	};
	struct ibv_qp_ex *qp;
	struct ibv_qp *base;

	NO_POINTER(ibv_create_qp_ex(context, &attr), EINVAL);
	attr.comp_mask |= IBV_QP_INIT_ATTR_PD;
	NO_POINTER(ibv_create_qp_ex(context, &attr), EINVAL);
	attr.pd = pd;
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	NO_POINTER(ibv_create_qp_ex(context, &attr), EOPNOTSUPP);
	attr.create_flags = 0;
	attr.send_ops_flags = IBV_QP_EX_WITH_TSO;
	NO_POINTER(ibv_create_qp_ex(context, &attr), EOPNOTSUPP);
	attr.qp_type = IBV_QPT_UD;
	attr.send_ops_flags = IBV_QP_EX_WITH_BIND_MW;
	NO_POINTER(ibv_create_qp_ex(context, &attr), EOPNOTSUPP);
	attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	NO_POINTER(ibv_create_qp_ex(context, &attr), EOPNOTSUPP);
	attr.qp_type = IBV_QPT_RC;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	MUST(base = ibv_create_qp_ex(context, &attr));
	MUST(qp = ibv_qp_to_qp_ex(base));

	REFUSED(ibv_wr_complete(qp), EINVAL);
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	REFUSED(ibv_wr_complete(qp), EINVAL);
	connect_to(base, base->qp_num);
	/* A description without a request, an operation that was not asked for, one that the card has not, no memory of a key. */
	ibv_wr_start(qp);
	ibv_wr_set_sge(qp, 1, 0, 0);
	REFUSED(ibv_wr_complete(qp), EINVAL);
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, 1, 0);
	REFUSED(ibv_wr_complete(qp), EINVAL);
	ibv_wr_start(qp);
	ibv_wr_local_inv(qp, 1);
	REFUSED(ibv_wr_complete(qp), EINVAL);
	ibv_wr_start(qp);
	ibv_wr_send_tso(qp, memory, 1, 1);
	REFUSED(ibv_wr_complete(qp), EOPNOTSUPP);
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_ud_addr(qp, (void *)memory, 1, 1);
	REFUSED(ibv_wr_complete(qp), EINVAL);
	/* More than there is room for: nothing is posted. */
	ibv_wr_start(qp);
	for (int i = 0; i < 100; i++)
		ibv_wr_send(qp);
	REFUSED(ibv_wr_complete(qp), ENOMEM);
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, memory, sizeof memory);
	REFUSED(ibv_wr_complete(qp), EINVAL);
	ibv_wr_start(qp);
	ibv_wr_start(qp);
	REFUSED(ibv_wr_complete(qp), EINVAL);
	REFUSED(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), EBUSY);
	REFUSED(ibv_destroy_qp(base), 0);
	REFUSED(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void completions(struct ibv_context *context)
{
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *told;
	struct ibv_wc wc;
	void *user;

	NO_POINTER(ibv_create_cq(context, 0, NULL, NULL, 0), EINVAL);
	NO_POINTER(ibv_create_cq(context, -1, NULL, NULL, 0), EINVAL);
	NO_POINTER(ibv_create_cq(context, 1 << 30, NULL, NULL, 0), EINVAL);
	NO_POINTER(ibv_create_cq(context, 1, NULL, NULL, 1), EINVAL);
	NO_POINTER(ibv_create_cq(context, 1, NULL, (void *)memory, 0), EINVAL);
	MUST(cq = ibv_create_cq(context, 8, NULL, NULL, 0));
	REFUSED(ibv_req_notify_cq(cq, 0), 0);
	REFUSED(ibv_destroy_cq(cq), 0);
	MUST(channel = ibv_create_comp_channel(context));
	MUST(cq = ibv_create_cq(context, 8, NULL, channel, 0));
	MUST(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
	MINUS_ONE(ibv_get_cq_event(channel, &told, &user), EAGAIN);
	REFUSED(ibv_destroy_comp_channel(channel), EBUSY);
	REFUSED(-ibv_poll_cq(cq, -1, &wc), EINVAL);
	REFUSED(ibv_resize_cq(cq, 0), EINVAL);
	REFUSED(ibv_resize_cq(cq, -1), EINVAL);
	REFUSED(ibv_resize_cq(cq, 1 << 23), EINVAL);
	REFUSED(ibv_resize_cq((struct ibv_cq *)channel, 16), EINVAL);
	REFUSED(ibv_destroy_cq(cq), 0);
	REFUSED(ibv_destroy_cq(cq), EINVAL);
	REFUSED(-context->ops.poll_cq(cq, 1, &wc), EINVAL);
	REFUSED(context->ops.req_notify_cq(cq, 0), EINVAL);
	REFUSED(ibv_destroy_comp_channel(channel), 0);
	MINUS_ONE(ibv_get_cq_event(channel, &told, &user), EINVAL);
}

static void posting(struct ibv_context *context, struct ibv_pd *pd, struct ibv_qp *qp)
{
	struct ibv_sge sges[20];
	struct ibv_recv_wr recvs[6], *bad_recv = NULL;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send = NULL;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

	memset(sges, 0, sizeof sges);
	memset(recvs, 0, sizeof recvs);
	for (int i = 0; i < 5; i++)
		recvs[i].next = &recvs[i + 1];
	for (int i = 0; i < 20; i++)
		sges[i].length = 1;

	REFUSED(ibv_post_recv(qp, recvs, &bad_recv), EINVAL);
	REFUSED(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	REFUSED(ibv_modify_qp(qp, &attr, init | IBV_QP_AV), EINVAL);
	attr.port_num = 2;
	REFUSED(ibv_modify_qp(qp, &attr, init), EINVAL);
	attr.port_num = 1;
	attr.pkey_index = 1;
	REFUSED(ibv_modify_qp(qp, &attr, init), EINVAL);
	attr.pkey_index = 0;
	REFUSED(ibv_modify_qp(qp, &attr, init), 0);
	expect("state", qp->state, IBV_QPS_INIT);
	attr.qp_state = IBV_QPS_RTS;
	REFUSED(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), EINVAL);

	/* Those before the one that is refused are posted, of 4 places. */
	recvs[1].sg_list = sges;
	recvs[1].num_sge = 20;
	REFUSED(ibv_post_recv(qp, recvs, &bad_recv), EINVAL);
	expect("first bad receive", bad_recv - recvs, 1);
	recvs[1].num_sge = 2;
	REFUSED(ibv_post_recv(qp, &recvs[1], &bad_recv), EINVAL);
	recvs[1].num_sge = -1;
	REFUSED(ibv_post_recv(qp, &recvs[1], &bad_recv), EINVAL);
	recvs[1].num_sge = 0;
	REFUSED(ibv_post_recv(qp, &recvs[1], &bad_recv), ENOMEM);
	expect("receive without a place", bad_recv - recvs, 4);

	REFUSED(ibv_post_send(qp, &send, &bad_send), EINVAL);
	expect("bad send", bad_send != &send, 0);
	send.opcode = IBV_WR_LOCAL_INV;
	REFUSED(ibv_post_send(qp, &send, &bad_send), EINVAL);
	send.opcode = IBV_WR_BIND_MW;
	REFUSED(ibv_post_send(qp, &send, &bad_send), EINVAL);
	send.opcode = IBV_WR_TSO;
	REFUSED(ibv_post_send(qp, &send, &bad_send), EOPNOTSUPP);
	send.opcode = IBV_WR_SEND;
	send.send_flags = IBV_SEND_IP_CSUM;
	REFUSED(ibv_post_send(qp, &send, &bad_send), EINVAL);

	NO_POINTER(ibv_qp_to_qp_ex(qp), EOPNOTSUPP);
	REFUSED(ibv_destroy_qp(qp), 0);
	REFUSED(ibv_destroy_qp(qp), EINVAL);
	REFUSED(context->ops.post_recv(qp, recvs, &bad_recv), EINVAL);
	bad_send = NULL;
	REFUSED(context->ops.post_send(qp, &send, &bad_send), EINVAL);
	expect("bad send of no queue pair", bad_send != &send, 0);
	REFUSED(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	(void)pd;
}

static void queue_pairs(struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_ah_attr path = { .port_num = 1 };
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	MUST(cq = ibv_create_cq(context, 8, NULL, NULL, 0));
	struct ibv_qp_init_attr attr = qp_attr(cq);
	attr.qp_type = IBV_QPT_RAW_PACKET;
	NO_POINTER(ibv_create_qp(pd, &attr), EOPNOTSUPP);
	attr = qp_attr((struct ibv_cq *)pd);
	NO_POINTER(ibv_create_qp(pd, &attr), EINVAL);
	attr = qp_attr(cq);
	attr.cap.max_send_wr = 1 << 20;
	NO_POINTER(ibv_create_qp(pd, &attr), EINVAL);
	attr = qp_attr(cq);
	attr.cap.max_recv_sge = 1000;
	NO_POINTER(ibv_create_qp(pd, &attr), EINVAL);
	attr = qp_attr(cq);
	NO_POINTER(ibv_create_qp((struct ibv_pd *)cq, &attr), EINVAL);

	MUST(srq = ibv_create_srq(pd, &srq_attr));
	attr.srq = srq;
	/* Sizes of a receive queue that it does not have. */
	attr.cap.max_recv_wr = 1 << 30;
	attr.cap.max_recv_sge = 1000;
	MUST(qp = ibv_create_qp(pd, &attr));
	expect("receive requests", attr.cap.max_recv_wr, 0);
	expect("pieces of them", attr.cap.max_recv_sge, 0);
	REFUSED(ibv_destroy_srq(srq), EBUSY);
	REFUSED(ibv_destroy_cq(cq), EBUSY);
	REFUSED(ibv_dealloc_pd(pd), EBUSY);
	REFUSED(ibv_modify_srq(srq, &srq_attr.attr, IBV_SRQ_MAX_WR), EOPNOTSUPP);
	srq_attr.attr.srq_limit = 1 << 20;
	REFUSED(ibv_modify_srq(srq, &srq_attr.attr, IBV_SRQ_LIMIT), EINVAL);
	REFUSED(ibv_destroy_qp(qp), 0);
	REFUSED(ibv_destroy_srq(srq), 0);
	REFUSED(ibv_destroy_srq(srq), EINVAL);

	attr = qp_attr(cq);
	MUST(qp = ibv_create_qp(pd, &attr));
	posting(context, pd, qp);

	struct ibv_wc wc = { .byte_len = 40 };
	MINUS_ONE(ibv_init_ah_from_wc(context, 1, &wc, NULL, &path), EINVAL);
	NO_POINTER(ibv_create_ah(pd, &path), EINVAL);
	path.is_global = 1;
	path.grh.sgid_index = 9;
	NO_POINTER(ibv_create_ah(pd, &path), EINVAL);
	REFUSED(ibv_destroy_cq(cq), 0);
}

/* Standard error is a pipe that nobody reads, where what an error number cannot tell is said. */
static void unheard(struct ibv_pd *pd)
{
	int ends[2];

	signal(SIGPIPE, SIG_IGN);
	MUST(pipe(ends) == 0);
	MUST(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
	close(ends[0]);
	close(ends[1]);
	MUST(write(STDERR_FILENO, "", 1) == -1 && errno == EPIPE);
	NO_POINTER(ibv_reg_mr(pd, (void *)4096, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT);
}

/* A child has the handles of its parent, and not the card: what it does with them ends nothing of the parent's. */
static void children(struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_port_attr port;
	struct ibv_mr *mr;
	int result;
	pid_t child = fork();

	MUST(child >= 0);
	if (!child) {
		alarm(20);
		if (getenv("FERROCE_DEVICE") && !strncmp(getenv("FERROCE_DEVICE"), "unix:", 5))
			ibv_query_port(context, 1, &port);
		_exit(ibv_close_device(context));
	}
	MUST(waitpid(child, &result, 0) == child);
	expect("end of the child", result, 0);
	MUST(mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE));
	REFUSED(ibv_dereg_mr(mr), 0);
}

int main(void)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd;

	MUST(pd = ibv_alloc_pd(context));
	devices(context);
	regions(pd);
	completions(context);
	extended(context, pd);
	queue_pairs(context, pd);
	children(context, pd);
	unheard(pd);
	REFUSED(ibv_dealloc_pd(pd), 0);
	REFUSED(ibv_dealloc_pd(pd), EINVAL);
	REFUSED(ibv_close_device(context), 0);
	REFUSED(ibv_close_device(context), EINVAL);
	return wrong;
}
