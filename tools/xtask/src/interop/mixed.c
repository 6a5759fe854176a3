/* Operations of all kinds under way on one queue pair: a WRITE or SEND with a READ or an atomic behind it, in waves of one to
 * four rounds. Between waves nothing is under way, so that the last answers of a wave have none behind them that stands for
 * them. Each READ must bring what was written in front of it, each atomic the value of its turn; in the end the memory of the
 * server must be what the rounds make of it. "mixed -p PORT -n ROUNDS -g GID -m MTU -s BYTES [HOST]": with HOST a client. */

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SLOTS = 8,	/* places that are written and read */
	WAVE = 4,	/* rounds at most that are under way */
	OPS = 3,	/* operations of a round at most */
	READS = 4,	/* READs and atomics under way */
	TIMEOUT = 16,	/* 0.27 s: an engine that is simulated is slow */
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
};

/* What the other side has to know. */
struct place {
	uint32_t qpn, psn, rkey;
	uint64_t addr;
	union ibv_gid gid;
};

struct side {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct place own, peer;
	int tcp;
};

static unsigned port = 18515, rounds = 20, gid_index, mtu = 1024, size = 5001;

static void fail(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fputs("mixed: ", stderr);
	vfprintf(stderr, format, list);
	fputs("\n", stderr);
	exit(1);
}

#define MUST(what) do { if (!(what)) fail("%s failed", #what); } while (0)

/* Rounds: what each does follows from its number. */

static int sends(unsigned round) { return round % 4 == 2; }

static int atomics(unsigned round) { return round % 4 == 1 || round % 4 == 3; }

static unsigned length(unsigned round) { return round / 4 % 2 ? size : 1 + (round * 37 + 16) % (mtu - 1); }

static uint8_t value(unsigned round, unsigned byte) { return round * 29 + byte * 7 + (byte >> 8) * 13 + 1; }

/* The slot that a round writes and reads; one that sends reads that of the round before. */
static unsigned slot_of(unsigned round) { return (sends(round) ? round + SLOTS - 1 : round) % SLOTS; }

/* The last round before `end` that wrote to a slot, -1 if there is none. */
static int writer(unsigned slot, unsigned end)
{
	for (int round = (int)end - 1; round >= 0; round--)
		if (!sends(round) && slot_of(round) == slot)
			return round;
	return -1;
}

/* The counter before a round: a FETCH_ADD adds the number of its round, a CMP_SWAP puts it in. */
static uint64_t counter(unsigned end)
{
	uint64_t now = 0;

	for (unsigned round = 0; round < end; round++)
		if (atomics(round))
			now = round % 4 == 1 ? now + round : round;
	return now;
}

/* Whether a place holds what a round wrote, or nothing. */
static int holds(const uint8_t *at, int round)
{
	unsigned bytes = round < 0 ? 0 : length(round);

	for (unsigned byte = 0; byte < bytes; byte++)
		if (at[byte] != value(round, byte))
			return 0;
	return 1;
}

/* Memory: slots, the counter, then what is sent or received, a place each. */

static uint8_t *slot(const struct side *side, unsigned n) { return side->memory + n * size; }

static size_t counter_at(void) { return (SLOTS * size + 7) / 8 * 8; }

static uint8_t *buffer(const struct side *side, unsigned n) { return side->memory + counter_at() + 8 + (size_t)n * 2 * size; }

/* Connection. */

static void talk(int tcp, void *out, void *in, size_t bytes)
{
	size_t got = 0;

	MUST(!out || write(tcp, out, bytes) == (ssize_t)bytes);
	while (in && got < bytes) {
		ssize_t more = read(tcp, (char *)in + got, bytes - got);

		if (more <= 0)
			fail("the other side is gone");
		got += more;
	}
}

static int meet(const char *host)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, tcp = socket(AF_INET, SOCK_STREAM, 0), listener = tcp;

	MUST(tcp >= 0);
	if (host) {
		MUST(inet_pton(AF_INET, host, &at.sin_addr) == 1);
		MUST(!connect(tcp, (void *)&at, sizeof at));
		return tcp;
	}
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	MUST(!bind(listener, (void *)&at, sizeof at) && !listen(listener, 1));
	MUST((tcp = accept(listener, NULL, NULL)) >= 0);
	close(listener);
	return tcp;
}

static void open_side(struct side *side, unsigned buffers)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	size_t bytes = counter_at() + 8 + (size_t)buffers * 2 * size;
	struct ibv_context *context;
	struct ibv_pd *pd;

	MUST(devices && devices[0]);
	MUST(context = ibv_open_device(devices[0]));
	MUST(pd = ibv_alloc_pd(context));
	MUST(!posix_memalign((void **)&side->memory, 4096, bytes));
	memset(side->memory, 0, bytes);
	MUST(side->mr = ibv_reg_mr(pd, side->memory, bytes, ACCESS));
	MUST(side->cq = ibv_create_cq(context, buffers + WAVE * OPS, NULL, NULL, 0));
	struct ibv_qp_init_attr init = {
		.send_cq = side->cq, .recv_cq = side->cq, .qp_type = IBV_QPT_RC,
		.cap = { WAVE * OPS, buffers, 1, 1, 0 },
	};
	MUST(side->qp = ibv_create_qp(pd, &init));
	side->own.qpn = side->qp->qp_num;
	side->own.psn = rand() & 0xffffff;
	side->own.rkey = side->mr->rkey;
	side->own.addr = (uintptr_t)side->memory;
	MUST(!ibv_query_gid(context, 1, gid_index, &side->own.gid));
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS };
	MUST(!ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

static void connect_side(struct side *side)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .dest_qp_num = side->peer.qpn, .rq_psn = side->peer.psn,
		.max_dest_rd_atomic = READS, .min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			.grh = { .dgid = side->peer.gid, .sgid_index = gid_index, .hop_limit = 64 } },
		.timeout = TIMEOUT, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = side->own.psn, .max_rd_atomic = READS,
	};

	attr.path_mtu = IBV_MTU_256;
	for (unsigned bytes = 256; bytes < mtu; bytes *= 2)
		attr.path_mtu++;
	MUST(!ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	MUST(!ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static struct ibv_wc completion(const struct side *side)
{
	struct ibv_wc wc;
	int got;

	while (!(got = ibv_poll_cq(side->cq, 1, &wc)))
		usleep(100);
	MUST(got == 1);
	if (wc.status != IBV_WC_SUCCESS)
		fail("operation %u of round %u: %s", (unsigned)wc.wr_id % OPS, (unsigned)wc.wr_id / OPS,
			ibv_wc_status_str(wc.status));
	return wc;
}

/* The client. */

/* Operation `number` of a round, if there is one. What it sends or brings stands at its place in the wave. */
static int operation(const struct side *side, unsigned round, unsigned number, unsigned place, struct ibv_send_wr *wr,
	struct ibv_sge *sge)
{
	uint8_t *at = buffer(side, place);
	unsigned to = slot_of(round);
	int written = writer(to, round + 1);

	*wr = (struct ibv_send_wr){ .wr_id = (uint64_t)round * OPS + number, .sg_list = sge, .num_sge = 1 };
	wr->send_flags = IBV_SEND_SIGNALED;
	*sge = (struct ibv_sge){ (uintptr_t)at, length(round), side->mr->lkey };
	wr->wr.rdma.remote_addr = side->peer.addr + (size_t)to * size;
	wr->wr.rdma.rkey = side->peer.rkey;
	if (number == 0) {
		wr->opcode = sends(round) ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
		/* Of every other eight rounds what stands behind it tells of it too. */
		wr->send_flags = round / 8 % 2 ? IBV_SEND_SIGNALED : 0;
		for (unsigned byte = 0; byte < length(round); byte++)
			at[byte] = value(round, byte);
		return 1;
	}
	sge->addr = (uintptr_t)at + size;
	if (number == 1 && atomics(round)) {
		wr->opcode = round % 4 == 1 ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
		wr->wr.atomic.remote_addr = side->peer.addr + counter_at();
		wr->wr.atomic.rkey = side->peer.rkey;
		wr->wr.atomic.compare_add = round % 4 == 1 ? round : counter(round);
		wr->wr.atomic.swap = round;
		sge->addr = (sge->addr + 7) / 8 * 8;
		sge->length = 8;
		return 1;
	}
	if (number == (round % 4 == 3 ? 2 : 1) && round % 4 != 1) {
		/* Behind the value of an atomic. */
		wr->opcode = IBV_WR_RDMA_READ;
		sge->addr = (uintptr_t)at + size + (number == 2 ? 16 : 0);
		sge->length = length(written) < size - 16 ? length(written) : size - 16;
		return 1;
	}
	return 0;
}

static void check(const struct ibv_send_wr *wr, const struct ibv_wc *wc)
{
	unsigned round = wr->wr_id / OPS;
	const uint8_t *at = (const uint8_t *)(uintptr_t)wr->sg_list->addr;
	int written = writer(slot_of(round), round + 1);
	uint64_t got;

	if (wc->wr_id != wr->wr_id)
		fail("operation %u of round %u completed, not that of round %u", (unsigned)wc->wr_id % OPS,
			(unsigned)wc->wr_id / OPS, round);
	if (wr->opcode == IBV_WR_RDMA_READ) {
		for (unsigned byte = 0; byte < wr->sg_list->length; byte++)
			if (at[byte] != value(written, byte))
				fail("round %u: wrong data of a READ at byte %u", round, byte);
	} else if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		memcpy(&got, at, 8);
		if (got != counter(round))
			fail("round %u: an atomic brought %llu, not %llu", round, (unsigned long long)got,
				(unsigned long long)counter(round));
	}
}

static unsigned client(struct side *side)
{
	unsigned done = 0;

	for (unsigned round = 0, wave = 1; round < rounds; wave = wave % WAVE + 1) {
		struct ibv_send_wr wrs[WAVE * OPS], *bad;
		struct ibv_sge sges[WAVE * OPS];
		unsigned posted = 0;

		for (unsigned turn = 0; turn < wave && round < rounds; turn++, round++) {
			memset(buffer(side, turn), 0xee, 2 * size);
			for (unsigned number = 0; number < OPS; number++)
				posted += operation(side, round, number, turn, &wrs[posted], &sges[posted]);
		}
		for (unsigned n = 0; n < posted; n++)
			wrs[n].next = n + 1 < posted ? &wrs[n + 1] : NULL;
		/* The last of a wave tells of its end. */
		wrs[posted - 1].send_flags = IBV_SEND_SIGNALED;
		MUST(!ibv_post_send(side->qp, wrs, &bad));
		for (unsigned n = 0; n < posted; n++) {
			if (!(wrs[n].send_flags & IBV_SEND_SIGNALED))
				continue;
			struct ibv_wc wc = completion(side);

			check(&wrs[n], &wc);
		}
		done += posted;
	}
	return done;
}

/* The server. */

static void post_receives(const struct side *side, unsigned count)
{
	for (unsigned n = 0; n < count; n++) {
		struct ibv_sge sge = { (uintptr_t)buffer(side, n), size, side->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = n * OPS, .sg_list = &sge, .num_sge = 1 }, *bad;

		MUST(!ibv_post_recv(side->qp, &wr, &bad));
	}
}

/* All that the rounds made of its memory. */
static void check_server(const struct side *side, unsigned count)
{
	uint64_t now;

	for (unsigned n = 0; n < count; n++) {
		struct ibv_wc wc = completion(side);
		unsigned round = n * 4 + 2;

		if (wc.wr_id != (uint64_t)n * OPS || wc.byte_len != length(round) || !holds(buffer(side, n), round))
			fail("the message of round %u is not as it was sent", round);
	}
	for (unsigned n = 0; n < SLOTS; n++)
		if (!holds(slot(side, n), writer(n, rounds)))
			fail("slot %u does not hold what was written last", n);
	memcpy(&now, side->memory + counter_at(), 8);
	if (now != counter(rounds))
		fail("the counter is %llu, not %llu", (unsigned long long)now, (unsigned long long)counter(rounds));
}

int main(int argc, char **argv)
{
	struct side side = { 0 };
	unsigned receives = 0, done = 0;
	int option;

	while ((option = getopt(argc, argv, "p:n:g:m:s:")) != -1) {
		unsigned number = optarg ? strtoul(optarg, NULL, 10) : 0;

		switch (option) {
		case 'p': port = number; break;
		case 'n': rounds = number; break;
		case 'g': gid_index = number; break;
		case 'm': mtu = number; break;
		case 's': size = number; break;
		default: return 2;
		}
	}
	const char *host = argv[optind];

	if (size < mtu || size < 64)
		fail("-s is at least the MTU");
	for (unsigned round = 0; round < rounds; round++)
		receives += sends(round);
	srand(getpid());
	open_side(&side, host ? WAVE : receives + 1);
	if (!host)
		post_receives(&side, receives);
	side.tcp = meet(host);
	talk(side.tcp, &side.own, &side.peer, sizeof side.own);
	connect_side(&side);
	/* Both can take packets. */
	talk(side.tcp, &done, &done, sizeof done);
	if (host)
		done = client(&side);
	/* Nothing is under way any more. */
	talk(side.tcp, host ? &done : NULL, host ? NULL : &done, sizeof done);
	if (!host)
		check_server(&side, receives);
	talk(side.tcp, host ? NULL : &done, host ? &done : NULL, sizeof done);
	printf("%u rounds, %u operations\n", rounds, done);
	return 0;
}
