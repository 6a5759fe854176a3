/* What the attributes of a device promise can be had. Prints what differs; exits with how many did. */

#include "check.h"

/* A WRITE without bytes and without completion; a queue keeps its place until a later one completes. */
static int post(struct ibv_qp *qp)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_RDMA_WRITE }, *bad;

	return ibv_post_send(qp, &send, &bad);
}

static int receive(struct ibv_qp *qp)
{
	struct ibv_recv_wr recv = {}, *bad;

	return ibv_post_recv(qp, &recv, &bad);
}

/* A queue pair has max_qp_wr requests each way, whatever its lists. */
static void requests(struct ibv_pd *pd, struct ibv_device_attr *limits)
{
	struct ibv_qp *qp;
	struct ibv_cq *cq;

	MUST(cq = ibv_create_cq(pd->context, 8, NULL, NULL, 0));
	struct ibv_qp_init_attr init = qp_attr(cq);

	init.cap.max_send_wr = init.cap.max_recv_wr = limits->max_qp_wr;
	init.cap.max_send_sge = init.cap.max_recv_sge = limits->max_sge;
	MUST(qp = ibv_create_qp(pd, &init));
	expect("send requests", init.cap.max_send_wr, limits->max_qp_wr);
	connect_to(qp, qp->qp_num);
	for (unsigned int i = 0; i < init.cap.max_send_wr; i++)
		MUST(post(qp) == 0);
	REFUSED(post(qp), ENOMEM);
	for (unsigned int i = 0; i < init.cap.max_recv_wr; i++)
		MUST(receive(qp) == 0);
	REFUSED(receive(qp), ENOMEM);
	REFUSED(ibv_destroy_qp(qp), 0);
	init.cap.max_send_wr++;
	NO_POINTER(ibv_create_qp(pd, &init), EINVAL);
	REFUSED(ibv_destroy_cq(cq), 0);
}

static void bind_to(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mr *mr)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = mr, .addr = (uintptr_t)memory, .length = 64,
			       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
	};

	MUST(ibv_bind_mw(qp, mw, &bind) == 0);
	expect("bound", completion(qp->send_cq).status, IBV_WC_SUCCESS);
}

/* max_mw windows and max_mr regions can be had at once, and no more; the last of them work. */
static void table(struct ibv_pd *pd, struct ibv_device_attr *limits)
{
	struct ibv_mw **mw = calloc(limits->max_mw, sizeof *mw);
	struct ibv_mr **mr = calloc(limits->max_mr, sizeof *mr);
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	MUST(mw && mr);
	MUST(cq = ibv_create_cq(pd->context, 8, NULL, NULL, 0));
	struct ibv_qp_init_attr init = qp_attr(cq);
	MUST(qp = ibv_create_qp(pd, &init));
	connect_to(qp, qp->qp_num);
	for (int i = 0; i < limits->max_mw; i++)
		MUST(mw[i] = ibv_alloc_mw(pd, IBV_MW_TYPE_1));
	for (int i = 0; i < limits->max_mr; i++)
		MUST(mr[i] = ibv_reg_mr(pd, memory, sizeof memory, access));
	NO_POINTER(ibv_reg_mr(pd, memory, sizeof memory, access), ENOMEM);
	NO_POINTER(ibv_alloc_mw(pd, IBV_MW_TYPE_1), ENOMEM);
	bind_to(qp, mw[limits->max_mw - 1], mr[limits->max_mr - 1]);
	for (int i = 0; i < limits->max_mw; i++)
		REFUSED(ibv_dealloc_mw(mw[i]), 0);
	for (int i = 0; i < limits->max_mr; i++)
		REFUSED(ibv_dereg_mr(mr[i]), 0);
	REFUSED(ibv_destroy_qp(qp), 0);
	REFUSED(ibv_destroy_cq(cq), 0);
	free(mw);
	free(mr);
}

int main(void)
{
	struct ibv_context *context = open_device();
	struct ibv_device_attr limits;
	struct ibv_pd *pd, *other;

	MUST(ibv_query_device(context, &limits) == 0);
	MUST(pd = ibv_alloc_pd(context));
	MUST(other = ibv_alloc_pd(context));
	expect("one handle for two domains", pd->handle == other->handle, 0);
	REFUSED(ibv_dealloc_pd(other), 0);
	requests(pd, &limits);
	table(pd, &limits);
	REFUSED(ibv_dealloc_pd(pd), 0);
	REFUSED(ibv_close_device(context), 0);
	return wrong;
}
