/* What the programs of the tests share: checks that print what differs, and a queue pair that is connected to its own card. */

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Polls until something completes; each takes 50 us on a simulated card. */
#define POLLS 400000

#ifndef SANITIZER
#define SANITIZER ""
#endif

/* A thread that is cancelled ends on a stack that the sanitizer still guards: its own signal stack is not for such. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "use_sigaltstack=0" SANITIZER;
}

static int wrong;

static inline void expect(const char *what, long long found, long long expected)
{
	if (found == expected)
		return;
	printf("%s: %lld, expected %lld\n", what, found, expected);
	wrong++;
}

static inline void expect_errno(const char *call, int found, int expected)
{
	if (found == expected)
		return;
	printf("%s: %d (%s), expected %d (%s)\n", call, found, strerror(found), expected,
	       strerror(expected));
	wrong++;
}

/* A function that returns 0 or an error number. */
#define REFUSED(call, number) expect_errno(#call, (call), number)
/* A function that returns 0 or -1 and sets errno. */
#define MINUS_ONE(call, number) (errno = 0, expect_errno(#call, (call) == -1 ? errno : 0, number))
/* A function that returns a pointer or NULL and sets errno. */
#define NO_POINTER(call, number) (errno = 0, expect_errno(#call, (call) ? 0 : errno, number))
#define MUST(condition) \
	do { \
		if (!(condition)) { \
			printf("%s failed: %s\n", #condition, strerror(errno)); \
			exit(99); \
		} \
	} while (0)

static char memory[8192] __attribute__((aligned(4096), unused));

static inline struct ibv_context *open_device(void)
{
	struct ibv_device **list;
	struct ibv_context *context;
	int count;

	MUST(list = ibv_get_device_list(&count));
	MUST(count == 1 && list[0] && !list[1]);
	MUST(context = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	return context;
}

static inline struct ibv_qp_init_attr qp_attr(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	return attr;
}

/* To RTS, with a queue pair of the same card at the other end. */
static inline void connect_to(struct ibv_qp *qp, unsigned int number)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = number,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = 1, .hop_limit = 1 } },
	};

	MUST(ibv_query_gid(qp->context, 1, 1, &attr.ah_attr.grh.dgid) == 0);
	MUST(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
	attr.qp_state = IBV_QPS_RTR;
	MUST(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER) == 0);
	attr.qp_state = IBV_QPS_RTS;
	MUST(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* The next completion. */
static inline struct ibv_wc completion(struct ibv_cq *cq)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };

	for (int i = 0; i < POLLS; i++) {
		int found = ibv_poll_cq(cq, 1, &wc);

		MUST(found >= 0);
		if (found)
			return wc;
	}
	MUST(!"something completes");
	return wc;
}
