/*
 * A WRITE between two queue pairs of a Ferroce card, in C: no library, no Rust. Written from docs/host-contract.md and
 * ferroce_abi.h alone. The card is one that `cargo xtask card` serves, behind a vfio-user socket:
 *
 *     cargo xtask card --socket /tmp/card --dut model &
 *     cc -std=c11 -I driver/include -o write driver/examples/c/write.c
 *     ./write /tmp/card
 *
 * With a card in hardware the first part (a vfio-user client) becomes the mapping of BAR0 and of memory by VFIO; the rest
 * stays. Both queue pairs are on one card: frames that it sends to its own MAC address come back to it.
 */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ferroce_abi.h"

static void fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fputs("write: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    exit(1);
}

/* Memory of the host that the card reaches, at an IOVA that is its virtual address. */
enum { PAGE = 4096, ARENA_PAGES = 64 };
static _Alignas(4096) uint8_t arena[ARENA_PAGES * PAGE];
static size_t arena_used;

/* Zeroed memory, aligned to a page. */
static void *take(size_t bytes)
{
    void *at = arena + arena_used;
    arena_used += (bytes + PAGE - 1) / PAGE * PAGE;
    if (arena_used > sizeof arena)
        fail("the arena of %zu bytes is too small", sizeof arena);
    return at;
}

static uint64_t iova(const void *at)
{
    return (uint64_t)(uintptr_t)at;
}

/* ---- A client of the vfio-user protocol, version 0.1: numbers in the byte order of the host. ---- */

enum { VERSION = 1, DMA_MAP = 2, REGION_READ = 9, REGION_WRITE = 10, DMA_READ = 11, DMA_WRITE = 12 };
enum { REPLY = 1, ERROR = 1 << 5, BAR0 = 0, CONFIG = 7, MAX_MESSAGE = (1 << 20) + 4096 };

struct header {
    uint16_t id, command;
    uint32_t size, flags, error;
};
struct region {
    uint64_t offset;
    uint32_t region, count;
};
struct dma {
    uint64_t address, count;
};
struct map {
    uint32_t argsz, flags;
    uint64_t offset, address, size;
};

static int card;
static uint8_t message[MAX_MESSAGE];

static void send_all(const void *data, size_t bytes)
{
    for (const uint8_t *at = data; bytes > 0;) {
        ssize_t sent = send(card, at, bytes, MSG_NOSIGNAL);
        if (sent <= 0)
            fail("the card does not take messages");
        at += sent;
        bytes -= (size_t)sent;
    }
}

static void receive(void *data, size_t bytes)
{
    for (uint8_t *at = data; bytes > 0;) {
        ssize_t got = recv(card, at, bytes, 0);
        if (got <= 0)
            fail("the card closed the connection");
        at += got;
        bytes -= (size_t)got;
    }
}

/* Takes one message: an access of the card to memory is served, a reply is left in `message`. */
static struct header take_message(void)
{
    struct header head;
    struct dma dma;
    receive(&head, sizeof head);
    if (head.size < sizeof head || head.size > sizeof message)
        fail("a message of %u bytes", (unsigned)head.size);
    size_t bytes = head.size - sizeof head;
    receive(message, bytes);
    if (head.flags & REPLY || bytes < sizeof dma)
        return head;
    memcpy(&dma, message, sizeof dma);
    uint64_t at = dma.address - iova(arena);
    int inside = at < sizeof arena && dma.count <= sizeof arena - at;
    struct header answer = { head.id, head.command, sizeof answer + sizeof dma, REPLY, 0 };
    if (!inside) {
        answer = (struct header){ head.id, head.command, sizeof answer, REPLY | ERROR, 14 /* EFAULT */ };
        send_all(&answer, sizeof answer);
        return head;
    }
    if (head.command == DMA_WRITE)
        memcpy(arena + at, message + sizeof dma, dma.count);
    else
        answer.size += (uint32_t)dma.count;
    send_all(&answer, sizeof answer);
    send_all(&dma, sizeof dma);
    if (head.command == DMA_READ)
        send_all(arena + at, dma.count);
    return head;
}

/* Sends a command of a fixed part and data, and waits for its reply, which is left in `message`. */
static void call(uint16_t command, const void *fixed, size_t bytes, const void *data, size_t more)
{
    static uint16_t id;
    struct header head = { ++id, command, (uint32_t)(sizeof head + bytes + more), 0, 0 };
    send_all(&head, sizeof head);
    send_all(fixed, bytes);
    send_all(data, more);
    do
        head = take_message();
    while (!(head.flags & REPLY));
    if (head.id != id || head.flags & ERROR)
        fail("the card refused vfio-user command %d: error %u", command, (unsigned)head.error);
}

static uint32_t read32(uint32_t offset)
{
    struct region at = { offset, BAR0, 4 };
    call(REGION_READ, &at, sizeof at, NULL, 0);
    return (uint32_t)ferroce_get(message + sizeof at, FERROCE_FIELD(0, 32));
}

/* Registers and doorbells. With VFIO a barrier comes here, then one store. */
static void write32(uint32_t offset, uint32_t value)
{
    struct region at = { offset, BAR0, 4 };
    uint8_t bytes[4];
    ferroce_set(bytes, FERROCE_FIELD(0, 32), value);
    call(REGION_WRITE, &at, sizeof at, bytes, sizeof bytes);
}

static void connect_card(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof address.sun_path)
        fail("%s is too long for a socket", path);
    strcpy(address.sun_path, path);
    card = socket(AF_UNIX, SOCK_STREAM, 0);
    if (card < 0 || connect(card, (struct sockaddr *)&address, sizeof address) != 0)
        fail("no card at %s: start cargo xtask card --socket %s --dut model", path, path);
    uint16_t version[2] = { 0, 1 };
    call(VERSION, version, sizeof version, "{}", 3);
    struct map map = { sizeof map, 3 /* read, write */, 0, iova(arena), sizeof arena };
    call(DMA_MAP, &map, sizeof map, NULL, 0);
    /* PCI command register: memory space and bus mastering on. */
    struct region command = { 4, CONFIG, 2 };
    call(REGION_WRITE, &command, sizeof command, "\x06", 2);
}

/* Lets time pass until `bit` of `byte` in memory that the card writes is `value`. */
static void wait_for(const uint8_t *byte, unsigned bit, unsigned value, const char *what)
{
    time_t end = time(NULL) + 60;
    while ((unsigned)(*(const volatile uint8_t *)byte >> bit & 1) != value) {
        struct pollfd ready = { card, POLLIN, 0 };
        if (time(NULL) > end)
            fail("%s did not come within a minute", what);
        if (poll(&ready, 1, 100) > 0)
            take_message();
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* the rest of the entry is read after its phase */
}

/* ---- The host contract. ---- */

/* [command] */
enum { LOG_COMMANDS = 4 };
static uint8_t *commands, *completions;
static uint32_t command_index; /* free running */

/* The entry of the next command: its head is at byte 0, its images are at bytes 64, 128 and 192. */
static uint8_t *new_command(uint32_t opcode, uint32_t index)
{
    uint8_t *entry = commands + FERROCE_CMD_BYTES * (command_index % (1u << LOG_COMMANDS));
    memset(entry, 0, FERROCE_CMD_BYTES);
    ferroce_set(entry, FERROCE_CMD_OPCODE, opcode);
    ferroce_set(entry, FERROCE_CMD_TOKEN, command_index & 0xffff);
    ferroce_set(entry, FERROCE_CMD_INDEX, index);
    return entry;
}

/* Hands it over and waits for its completion. */
static void run_command(void)
{
    uint32_t size = 1u << LOG_COMMANDS, index = command_index++;
    uint8_t *completion = completions + FERROCE_CPL_SIZE * (index % size);
    unsigned phase = (index / size + 1) % 2; /* 1 on the first pass over the ring, then 0, then 1 */
    write32(FERROCE_REG_CMD_PI, command_index);
    wait_for(completion + FERROCE_CPL_SIZE - 1, 7, phase, "the completion of a command");
    if (ferroce_get(completion, FERROCE_CPL_STATUS) != FERROCE_CMD_STATUS_OK)
        fail("command %u was answered with status %u", (unsigned)ferroce_get(completion, FERROCE_CPL_OPCODE),
             (unsigned)ferroce_get(completion, FERROCE_CPL_STATUS));
}
/* [command] */

/* [bring-up] */
static void bring_up(const uint8_t mac[6], const uint8_t gid[16])
{
    if (read32(FERROCE_REG_MAGIC) != FERROCE_MAGIC_VALUE)
        fail("this is no Ferroce card");
    if (read32(FERROCE_REG_VERSION) >> 16 != FERROCE_ABI_VERSION >> 16)
        fail("the card has another version of the contract");
    write32(FERROCE_REG_CONTROL, FERROCE_CONTROL_ENGINE_RESET);
    while (!(read32(FERROCE_REG_STATUS) & FERROCE_STATUS_READY))
        ;
    commands = take(FERROCE_CMD_BYTES << LOG_COMMANDS);
    completions = take(FERROCE_CPL_SIZE << LOG_COMMANDS);
    write32(FERROCE_REG_CMD_BASE_LO, (uint32_t)iova(commands));
    write32(FERROCE_REG_CMD_BASE_HI, (uint32_t)(iova(commands) >> 32));
    write32(FERROCE_REG_CPL_BASE_LO, (uint32_t)iova(completions));
    write32(FERROCE_REG_CPL_BASE_HI, (uint32_t)(iova(completions) >> 32));
    write32(FERROCE_REG_CMD_LOG_SIZE, LOG_COMMANDS);
    write32(FERROCE_REG_CONTROL, FERROCE_CONTROL_ENABLE);

    uint8_t *port = new_command(FERROCE_CMD_SET_PORT, 0) + 64;
    memcpy(ferroce_bytes(port, FERROCE_PORT_MAC), mac, 6);
    run_command();
    uint8_t *entry = new_command(FERROCE_CMD_SET_GID, 0) + 64;
    memcpy(ferroce_bytes(entry, FERROCE_GID_GID), gid, 16);
    ferroce_set(entry, FERROCE_GID_VALID, 1);
    run_command();
}
/* [bring-up] */

/* [objects] */
enum { PD = 1, CQ = 0, LOG_CQ = 4, LOG_SQ = 4, LOG_OUTSTANDING = 4, MTU_1024 = 3, PSN = 0x123456 };

static uint8_t *cq, *cq_consumer;

static void create_cq(void)
{
    cq = take(FERROCE_CQE_SIZE << LOG_CQ); /* zeros: not the phase of the first pass */
    cq_consumer = take(4);
    uint8_t *image = new_command(FERROCE_CMD_CREATE_CQ, CQ) + 64;
    ferroce_set(image, FERROCE_CQ_BASE, iova(cq));
    ferroce_set(image, FERROCE_CQ_CONSUMER, iova(cq_consumer));
    ferroce_set(image, FERROCE_CQ_LOG_SIZE, LOG_CQ);
    run_command();
}

/* Registers memory at a place of the region table; its key, for local and remote use. */
static uint32_t register_memory(uint32_t place, const void *at, size_t bytes)
{
    uint32_t key = place << 8 | 1; /* another low byte each time the place is used */
    uint8_t *image = new_command(FERROCE_CMD_WRITE_MR, place) + 64;
    ferroce_set(image, FERROCE_MR_BASE, iova(at));
    ferroce_set(image, FERROCE_MR_LAST, iova(at) + bytes - 1);
    ferroce_set(image, FERROCE_MR_KEY, key);
    ferroce_set(image, FERROCE_MR_PD, PD);
    ferroce_set(image, FERROCE_MR_VALID, 1);
    ferroce_set(image, FERROCE_MR_LOCAL_WRITE, 1);
    ferroce_set(image, FERROCE_MR_REMOTE_WRITE, 1);
    run_command();
    return key;
}
/* [objects] */

/* [queue pair] */
/* Takes a reliable connection from RESET to RTS by one command; its send queue. */
static uint8_t *connect_qp(uint32_t qpn, uint32_t peer, const uint8_t mac[6], const uint8_t gid[16])
{
    uint8_t *sq = take(FERROCE_SLOT_BYTES << LOG_SQ), *rq = take(FERROCE_SLOT_BYTES);
    uint8_t *head = new_command(FERROCE_CMD_MODIFY_QP, qpn);
    ferroce_set(head, FERROCE_CMD_QP_SQ, 1);
    ferroce_set(head, FERROCE_CMD_QP_AV, 1);
    ferroce_set(head, FERROCE_CMD_QP_RQ, 1);
    ferroce_set(head, FERROCE_CMD_QP_SQ_STATE, 1);
    ferroce_set(head, FERROCE_CMD_SQ_RESET, 1);
    ferroce_set(head, FERROCE_CMD_SQ_STATE, FERROCE_STATE_RTS);
    ferroce_set(head, FERROCE_CMD_SQ_PSN, PSN);
    ferroce_set(head, FERROCE_CMD_QP_RQ_STATE, 1);
    ferroce_set(head, FERROCE_CMD_RQ_RESET, 1);
    ferroce_set(head, FERROCE_CMD_RQ_STATE, FERROCE_STATE_RTS);
    ferroce_set(head, FERROCE_CMD_RQ_PSN, PSN);

    uint8_t *requester = head + 64, *address = head + 128, *responder = head + 192;
    ferroce_set(requester, FERROCE_SQ_QP_TYPE, FERROCE_TYPE_RC);
    ferroce_set(requester, FERROCE_SQ_MTU, MTU_1024);
    ferroce_set(requester, FERROCE_SQ_SQ_LOG, LOG_SQ);
    ferroce_set(requester, FERROCE_SQ_OT_LOG, LOG_OUTSTANDING);
    ferroce_set(requester, FERROCE_SQ_OT_BASE, qpn << LOG_OUTSTANDING);
    ferroce_set(requester, FERROCE_SQ_RETRY_CNT, 7);
    ferroce_set(requester, FERROCE_SQ_RNR_RETRY, 7);
    ferroce_set(requester, FERROCE_SQ_TIMEOUT, 20); /* 4.3 s: a simulated card is slow */
    ferroce_set(requester, FERROCE_SQ_PD, PD);
    ferroce_set(requester, FERROCE_SQ_CQN, CQ);
    ferroce_set(requester, FERROCE_SQ_SQ_BASE, iova(sq));
    memcpy(ferroce_bytes(address, FERROCE_AV_DGID), gid, 16);
    memcpy(ferroce_bytes(address, FERROCE_AV_DMAC), mac, 6);
    ferroce_set(address, FERROCE_AV_HOP_LIMIT, 64);
    ferroce_set(address, FERROCE_AV_UDP_SPORT, 0xc000 | qpn);
    ferroce_set(address, FERROCE_AV_REMOTE_QPN, peer);
    ferroce_set(address, FERROCE_AV_PKEY, 0xffff);
    memcpy(ferroce_bytes(responder, FERROCE_RQ_REMOTE_GID), gid, 16);
    ferroce_set(responder, FERROCE_RQ_RQ_BASE, iova(rq));
    ferroce_set(responder, FERROCE_RQ_QP_TYPE, FERROCE_TYPE_RC);
    ferroce_set(responder, FERROCE_RQ_MTU, MTU_1024);
    ferroce_set(responder, FERROCE_RQ_REMOTE_WRITE, 1);
    ferroce_set(responder, FERROCE_RQ_PKEY, 0xffff);
    ferroce_set(responder, FERROCE_RQ_PD, PD);
    ferroce_set(responder, FERROCE_RQ_CQN, CQ);
    /* The producer indices are the host's: no command sets them. */
    write32(ferroce_sq_doorbell(qpn), 0);
    write32(ferroce_rq_doorbell(qpn), 0);
    run_command();
    return sq;
}
/* [queue pair] */

/* [post] */
/* Posts a signaled WRITE as WQE number 0 of a send queue, and rings its doorbell. */
static void post_write(uint32_t qpn, uint8_t *sq, const void *from, uint32_t lkey, const void *to, uint32_t rkey,
                       uint32_t bytes)
{
    uint8_t *wqe = sq, *list = wqe + FERROCE_SEND_LIST_AT;
    memset(wqe, 0, FERROCE_SLOT_BYTES);
    ferroce_set(wqe, FERROCE_SEND_OPCODE, FERROCE_WQE_WRITE);
    ferroce_set(wqe, FERROCE_SEND_SIGNALED, 1);
    ferroce_set(wqe, FERROCE_SEND_SLOTS, 1);
    ferroce_set(wqe, FERROCE_SEND_NUM_SGE, 1);
    ferroce_set(wqe, FERROCE_SEND_REMOTE_ADDR, iova(to));
    ferroce_set(wqe, FERROCE_SEND_RKEY, rkey);
    ferroce_set(wqe, FERROCE_SEND_LENGTH, bytes);
    ferroce_set(list, FERROCE_SGE_ADDR, iova(from));
    ferroce_set(list, FERROCE_SGE_LENGTH, bytes);
    ferroce_set(list, FERROCE_SGE_LKEY, lkey);
    write32(ferroce_sq_doorbell(qpn), 1); /* producer index in slots */
}
/* [post] */

int main(int argc, char **argv)
{
    static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
    static const uint8_t gid[16] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1 };
    enum { BYTES = 3000, A = 2, B = 3 };
    if (argc != 2)
        return fprintf(stderr, "usage: write SOCKET\n"), 2;
    connect_card(argv[1]);
    bring_up(mac, gid);
    create_cq();
    uint8_t *source = take(BYTES), *target = take(BYTES);
    for (int i = 0; i < BYTES; i++)
        source[i] = (uint8_t)(i * 7 + 1);
    uint32_t lkey = register_memory(1, source, BYTES), rkey = register_memory(2, target, BYTES);
    uint8_t *sq = connect_qp(A, B, mac, gid);
    connect_qp(B, A, mac, gid);
    post_write(A, sq, source, lkey, target, rkey, BYTES);
    /* [poll] */
    uint8_t *cqe = cq; /* entry 0, on the first pass: phase 1 */
    wait_for(cqe + FERROCE_CQE_SIZE - 1, 7, 1, "the CQE");
    if (ferroce_get(cqe, FERROCE_CQE_STATUS) != FERROCE_WC_SUCCESS)
        fail("the WRITE completed with status %u", (unsigned)ferroce_get(cqe, FERROCE_CQE_STATUS));
    ferroce_set(cq_consumer, FERROCE_FIELD(0, 32), 1); /* entries taken so far */
    /* [poll] */
    if (memcmp(source, target, BYTES) != 0)
        fail("the data differs");
    printf("%d bytes written from queue pair %d to %d: %u packets sent, %u acknowledged\n", BYTES, A, B,
           (unsigned)read32(FERROCE_STAT_TX_ROCE_PACKETS), (unsigned)read32(FERROCE_STAT_RX_ACKS));
    return 0;
}
