/* Posts a list of four requests by one call. Prints what differs; exits with how many did. */

#include "check.h"

#define REQUESTS 4

int main(void)
{
	struct ibv_context *context = open_device();
	struct ibv_send_wr list[REQUESTS] = {}, *bad = NULL;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	MUST(pd = ibv_alloc_pd(context));
	MUST(cq = ibv_create_cq(context, 8, NULL, NULL, 0));
	struct ibv_qp_init_attr init = qp_attr(cq);
	MUST(qp = ibv_create_qp(pd, &init));
	connect_to(qp, qp->qp_num);
	for (int i = 0; i < REQUESTS; i++) {
		list[i].wr_id = i;
		list[i].opcode = IBV_WR_RDMA_WRITE;
		list[i].send_flags = IBV_SEND_SIGNALED;
		list[i].next = i + 1 < REQUESTS ? &list[i + 1] : NULL;
	}
	MUST(ibv_post_send(qp, list, &bad) == 0);
	expect("a bad request", bad != NULL, 0);
	for (int i = 0; i < REQUESTS; i++) {
		struct ibv_wc wc = completion(cq);

		expect("status", wc.status, IBV_WC_SUCCESS);
		expect("wr_id", wc.wr_id, i);
	}
	REFUSED(ibv_destroy_qp(qp), 0);
	REFUSED(ibv_destroy_cq(cq), 0);
	REFUSED(ibv_dealloc_pd(pd), 0);
	REFUSED(ibv_close_device(context), 0);
	return wrong;
}
