/* Asynchronous events, told by a card whose queue pairs talk to each other. Prints what differs; exits with how many did. */

#define _GNU_SOURCE

#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

/* Longest wait for an event in ms: against hanging only. */
#define LIMIT 60000

/* The next event is this one, of this object. */
static void event(struct ibv_context *context, enum ibv_event_type type, void *element)
{
	struct pollfd ready = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	MUST(poll(&ready, 1, LIMIT) == 1);
	MUST(ibv_get_async_event(context, &event) == 0);
	expect(ibv_event_type_str(type), event.event_type, type);
	expect("its object", (long long)event.element.qp, (long long)element);
	ibv_ack_async_event(&event);
}

/* No event comes within 100 ms. */
static void no_event(struct ibv_context *context)
{
	struct ibv_async_event event;

	usleep(100000);
	if (ibv_get_async_event(context, &event) == 0) {
		expect(ibv_event_type_str(event.event_type), event.event_type, -1);
		ibv_ack_async_event(&event);
	}
}

static struct ibv_qp *queue_pair(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = qp_attr(cq);
	struct ibv_qp *qp;

	attr.srq = srq;
	attr.sq_sig_all = 1;
	MUST(qp = ibv_create_qp(pd, &attr));
	return qp;
}

/* A shared receive queue of which less is left than was said, and a queue pair that takes nothing of it any more. */
static void srq_limit(struct ibv_context *context, struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_mr *mr)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_attr limit = { .srq_limit = 2 };
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = 8, .lkey = mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad_send;
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_srq *srq;

	MUST(srq = ibv_create_srq(pd, &init));
	struct ibv_qp *qp = queue_pair(pd, cq, srq);
	connect_to(qp, qp->qp_num);
	for (int i = 0; i < 2; i++)
		MUST(ibv_post_srq_recv(srq, &recv, &bad_recv) == 0);
	MUST(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0);
	MUST(ibv_query_srq(srq, &limit) == 0);
	expect("the limit is armed", limit.srq_limit, 2);
	MUST(ibv_post_send(qp, &send, &bad_send) == 0);
	for (int i = 0; i < 2; i++)
		expect("SEND to itself", completion(cq).status, IBV_WC_SUCCESS);
	event(context, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	MUST(ibv_query_srq(srq, &limit) == 0);
	expect("the limit was reached", limit.srq_limit, 0);
	/* Less than that is left already: the event comes while the limit is armed. */
	for (int i = 0; i < 50; i++) {
		limit.srq_limit = 2;
		MUST(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0);
		event(context, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
		MUST(ibv_query_srq(srq, &limit) == 0);
		expect("the limit was reached at once", limit.srq_limit, 0);
	}
	limit.srq_limit = 10000;
	REFUSED(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), EINVAL);
	MUST(ibv_query_srq(srq, &limit) == 0);
	expect("a limit that is refused", limit.srq_limit, 0);
	MUST(ibv_modify_qp(qp, &error, IBV_QP_STATE) == 0);
	event(context, IBV_EVENT_QP_LAST_WQE_REACHED, qp);
	/* Of the way from RTS to RESET nothing is told, and nothing when it goes. */
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	for (int i = 0; i < 2; i++) {
		MUST(ibv_modify_qp(qp, &reset, IBV_QP_STATE) == 0);
		no_event(context);
		connect_to(qp, qp->qp_num);
	}
	REFUSED(ibv_destroy_qp(qp), 0);
	REFUSED(ibv_destroy_srq(srq), 0);
}

/* A send queue that has drained: an event to whom asked for one. */
static void drained(struct ibv_context *context, struct ibv_qp *qp)
{
	for (int notify = 0; notify < 3; notify++) {
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify > 1 };
		int asks = notify ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0;

		MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE | asks) == 0);
		/* The event of the last time would come before it. */
		if (notify > 1)
			event(context, IBV_EVENT_SQ_DRAINED, qp);
		else
			usleep(100000);
		attr.qp_state = IBV_QPS_RTS;
		MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
	}
}

/* A WRITE to a key that is not there: the responder tells, and the requester's completion does, so no event. */
static void access_error(struct ibv_context *context, struct ibv_cq *cq, struct ibv_qp *from, struct ibv_qp *to,
			 struct ibv_mr *mr)
{
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = 8, .lkey = mr->lkey };
	struct ibv_send_wr send = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 }, *bad;

	send.wr.rdma.rkey = mr->rkey ^ 0xff;
	MUST(ibv_post_send(from, &send, &bad) == 0);
	expect("WRITE to no key", completion(cq).status, IBV_WC_REM_ACCESS_ERR);
	event(context, IBV_EVENT_QP_ACCESS_ERR, to);
}

static volatile int resolved;

static void *resolve(void *pd)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = 1 } };

	MUST(ibv_query_gid(((struct ibv_pd *)pd)->context, 1, 1, &attr.grh.dgid) == 0);
	attr.grh.dgid.raw[15] = 99;
	NO_POINTER(ibv_create_ah(pd, &attr), EHOSTUNREACH);
	resolved = 1;
	return NULL;
}

/* While a thread waits for a peer that nobody is, others are told what completes. */
static void told_meanwhile(struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_comp_channel *channel;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr recv = {}, *bad_recv;
	struct ibv_cq *cq;
	void *cq_context;
	pthread_t thread;

	MUST(channel = ibv_create_comp_channel(context));
	MUST(cq = ibv_create_cq(context, 8, NULL, channel, 0));
	struct ibv_qp *qp = queue_pair(pd, cq, NULL);
	connect_to(qp, qp->qp_num);
	MUST(ibv_post_recv(qp, &recv, &bad_recv) == 0);
	MUST(ibv_req_notify_cq(cq, 0) == 0);
	MUST(pthread_create(&thread, NULL, resolve, pd) == 0);
	usleep(50000);
	MUST(ibv_post_send(qp, &send, &bad) == 0);
	struct pollfd ready = { .fd = channel->fd, .events = POLLIN };
	MUST(poll(&ready, 1, LIMIT) == 1);
	expect("the peer is not found yet", resolved, 0);
	MUST(ibv_get_cq_event(channel, &cq, &cq_context) == 0);
	ibv_ack_cq_events(cq, 1);
	MUST(pthread_join(thread, NULL) == 0);
	REFUSED(ibv_destroy_qp(qp), 0);
	REFUSED(ibv_destroy_cq(cq), 0);
	REFUSED(ibv_destroy_comp_channel(channel), 0);
}

static void nothing(int number)
{
	(void)number;
}

static void *wait_for_completion(void *channel)
{
	struct ibv_cq *cq;
	void *cq_context;

	ibv_get_cq_event(channel, &cq, &cq_context);
	return NULL;
}

static void *wait_for_event(void *context)
{
	struct ibv_async_event event;

	ibv_get_async_event(context, &event);
	return NULL;
}

static void *interrupted(void *channel)
{
	struct ibv_cq *cq;
	void *cq_context;

	return (void *)(long)(ibv_get_cq_event(channel, &cq, &cq_context) ? errno : 0);
}

/* A signal whose handler has no calls restarted ends a wait. */
static void ends_by_a_signal(struct ibv_comp_channel *channel)
{
	struct sigaction action = { .sa_handler = nothing };
	pthread_t thread;
	void *end;

	MUST(sigaction(SIGUSR2, &action, NULL) == 0);
	MUST(pthread_create(&thread, NULL, interrupted, channel) == 0);
	usleep(50000);
	MUST(pthread_kill(thread, SIGUSR2) == 0);
	MUST(pthread_join(thread, &end) == 0);
	expect_errno("interrupted", (long)end, EINTR);
}

/* A signal whose handler has calls restarted does not end a wait; pthread_cancel does. */
static void ends_when_cancelled(void *(*wait)(void *), void *object)
{
	struct sigaction action = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	pthread_t thread;
	void *end;

	MUST(sigaction(SIGUSR1, &action, NULL) == 0);
	MUST(pthread_create(&thread, NULL, wait, object) == 0);
	usleep(50000);
	MUST(pthread_kill(thread, SIGUSR1) == 0);
	usleep(50000);
	expect_errno("the thread waits on", pthread_tryjoin_np(thread, &end), EBUSY);
	MUST(pthread_cancel(thread) == 0);
	MUST(pthread_join(thread, &end) == 0);
	expect("it was cancelled", end == PTHREAD_CANCELED, 1);
}

/* The end of a channel does not end a wait for it: rping leaves a thread there. */
static void waits_on(struct ibv_context *context)
{
	struct ibv_comp_channel *channel;
	pthread_t thread;
	void *end;

	MUST(channel = ibv_create_comp_channel(context));
	MUST(pthread_create(&thread, NULL, wait_for_completion, channel) == 0);
	usleep(50000);
	REFUSED(ibv_destroy_comp_channel(channel), 0);
	usleep(50000);
	expect_errno("the thread waits on", pthread_tryjoin_np(thread, &end), EBUSY);
	MUST(pthread_cancel(thread) == 0);
	MUST(pthread_join(thread, &end) == 0);
}

int main(void)
{
	struct ibv_context *context = open_device();
	struct ibv_async_event none;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;

	MUST(pd = ibv_alloc_pd(context));
	MUST(cq = ibv_create_cq(context, 8, NULL, NULL, 0));
	MUST(mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE));
	struct ibv_comp_channel *channel;
	MUST(channel = ibv_create_comp_channel(context));
	ends_by_a_signal(channel);
	ends_when_cancelled(wait_for_completion, channel);
	ends_when_cancelled(wait_for_event, context);
	waits_on(context);
	REFUSED(ibv_destroy_comp_channel(channel), 0);
	MUST(fcntl(context->async_fd, F_SETFL, O_NONBLOCK) == 0);
	MINUS_ONE(ibv_get_async_event(context, &none), EAGAIN);
	srq_limit(context, pd, cq, mr);
	struct ibv_qp *qp = queue_pair(pd, cq, NULL), *peer = queue_pair(pd, cq, NULL);
	connect_to(qp, peer->qp_num);
	connect_to(peer, qp->qp_num);
	drained(context, qp);
	access_error(context, cq, qp, peer, mr);
	told_meanwhile(context, pd);
	MINUS_ONE(ibv_get_async_event(context, &none), EAGAIN);
	REFUSED(ibv_destroy_qp(qp), 0);
	REFUSED(ibv_destroy_qp(peer), 0);
	REFUSED(ibv_dereg_mr(mr), 0);
	REFUSED(ibv_destroy_cq(cq), 0);
	REFUSED(ibv_dealloc_pd(pd), 0);
	REFUSED(ibv_close_device(context), 0);
	return wrong;
}
