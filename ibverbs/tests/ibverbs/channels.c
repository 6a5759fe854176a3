/* Threads that take events of one completion channel. Prints what differs; exits with how many did. */

#define _GNU_SOURCE

#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Longest wait for an event in ms: against hanging only. */
#define LIMIT 60000

/* What a thread does in front of the call by which the library waits, and behind it when it is woken. */
static __thread void (*before)(int fd);
static __thread void (*woken)(void);

static ssize_t called(int number, int fd, void *buf, size_t len, int flags)
{
	ssize_t got;

	if (before)
		before(fd);
	do
		got = syscall(number, fd, buf, len, flags, NULL, NULL);
	while (got < 0 && errno == EINTR);
	if (got > 0 && woken)
		woken();
	return got;
}

ssize_t read(int fd, void *buf, size_t len)
{
	return called(SYS_read, fd, buf, len, 0);
}

ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	return called(SYS_recvfrom, fd, buf, len, flags);
}

static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

static int readable(int limit)
{
	struct pollfd ready = { .fd = channel->fd, .events = POLLIN };

	return poll(&ready, 1, limit);
}

static struct ibv_qp *queue_pair(struct ibv_pd *pd, struct ibv_cq *of)
{
	struct ibv_qp_init_attr attr = qp_attr(of);
	struct ibv_qp *made;

	attr.sq_sig_all = 1;
	MUST(made = ibv_create_qp(pd, &attr));
	connect_to(made, made->qp_num);
	return made;
}

/* An event of the channel: a SEND to itself. */
static void raise_event(void)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr recv = {}, *bad_recv;

	MUST(ibv_req_notify_cq(cq, 0) == 0);
	MUST(ibv_post_recv(qp, &recv, &bad_recv) == 0);
	MUST(ibv_post_send(qp, &send, &bad) == 0);
	for (int i = 0; i < 2; i++)
		expect("SEND to itself", completion(cq).status, IBV_WC_SUCCESS);
}

/* Takes an event; 0 or an error number. */
static void *take(void *hook)
{
	struct ibv_cq *found;
	void *cq_context;

	woken = hook;
	int status = ibv_get_cq_event(channel, &found, &cq_context) ? errno : 0;
	if (status == 0) {
		expect("the queue", (long)found, (long)cq);
		ibv_ack_cq_events(found, 1);
	}
	return (void *)(long)status;
}

/* A thread that is cancelled when it is woken leaves the event to others. */
static void cancelled(void)
{
	pthread_t thread;
	void *end;

	MUST(pthread_create(&thread, NULL, take, pthread_testcancel) == 0);
	usleep(50000);
	MUST(pthread_cancel(thread) == 0);
	raise_event();
	MUST(pthread_join(thread, &end) == 0);
	expect("it was cancelled", end == PTHREAD_CANCELED, 1);
	expect("readable", readable(LIMIT), 1);
	expect("taken by another", (long)take(NULL), 0);
	expect("readable behind it", readable(0), 0);
}

static volatile int is_waiting, is_awake, is_taken;

/* Comes to wait only when the event is there, */
static void late(int fd)
{
	(void)fd;
	before = NULL;
	is_waiting = 1;
	MUST(readable(LIMIT) == 1);
}

/* and goes on only when another thread has it. */
static void slow(void)
{
	woken = NULL;
	is_awake = 1;
	while (!is_taken)
		usleep(1000);
}

static void *take_late(void *none)
{
	(void)none;
	before = late;
	return take(slow);
}

/* Two threads on a descriptor that does not block: one has the event, the other none. */
static void two_takers(void)
{
	pthread_t thread;
	void *end;

	MUST(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
	MUST(pthread_create(&thread, NULL, take_late, NULL) == 0);
	while (!is_waiting)
		usleep(1000);
	raise_event();
	while (!is_awake)
		usleep(1000);
	expect("the first takes it", (long)take(NULL), 0);
	is_taken = 1;
	MUST(pthread_join(thread, &end) == 0);
	expect("the second takes", (long)end, EAGAIN);
	expect("readable behind them", readable(0), 0);
}

/* The descriptor is readable exactly while there are events. */
static void readiness(void)
{
	for (int events = 1; events < 4; events++) {
		for (int i = 0; i < events; i++) {
			raise_event();
			usleep(20000);
		}
		for (int i = 0; i < events; i++) {
			expect("readable", readable(LIMIT), 1);
			expect("taken", (long)take(NULL), 0);
		}
		expect("readable at the end", readable(0), 0);
		expect("taken at the end", (long)take(NULL), EAGAIN);
	}
}

/* More channels than a card has event queues: each is told of its own queue. */
static void many(struct ibv_context *context, struct ibv_pd *pd)
{
	enum { CHANNELS = 20 };
	struct { struct ibv_comp_channel *channel; struct ibv_cq *cq; struct ibv_qp *qp; } all[CHANNELS];

	for (int i = 0; i < CHANNELS; i++) {
		MUST(all[i].channel = ibv_create_comp_channel(context));
		MUST(all[i].cq = ibv_create_cq(context, 8, NULL, all[i].channel, 0));
		all[i].qp = queue_pair(pd, all[i].cq);
	}
	for (int i = CHANNELS - 1; i >= 0; i--) {
		channel = all[i].channel;
		cq = all[i].cq;
		qp = all[i].qp;
		raise_event();
		expect("the channel is told", readable(LIMIT), 1);
		expect("of its queue", (long)take(NULL), 0);
		for (int other = 0; other < CHANNELS; other++) {
			channel = all[other].channel;
			expect("others are told", readable(0), 0);
		}
	}
	for (int i = 0; i < CHANNELS; i++) {
		REFUSED(ibv_destroy_qp(all[i].qp), 0);
		REFUSED(ibv_destroy_cq(all[i].cq), 0);
		REFUSED(ibv_destroy_comp_channel(all[i].channel), 0);
	}
}

int main(void)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd;

	/* What hangs ends, and is told. */
	alarm(120);
	setbuf(stdout, NULL);
	MUST(pd = ibv_alloc_pd(context));
	MUST(channel = ibv_create_comp_channel(context));
	MUST(cq = ibv_create_cq(context, 8, NULL, channel, 0));
	qp = queue_pair(pd, cq);
	cancelled();
	two_takers();
	readiness();
	REFUSED(ibv_destroy_qp(qp), 0);
	REFUSED(ibv_destroy_cq(cq), 0);
	REFUSED(ibv_destroy_comp_channel(channel), 0);
	many(context, pd);
	REFUSED(ibv_dealloc_pd(pd), 0);
	REFUSED(ibv_close_device(context), 0);
	return wrong;
}
