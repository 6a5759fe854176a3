/* What fails, of the card to itself: the first call, requests taken back, connections that end before they are there. */

#include "cm.h"

#define PORT 6000

struct ibv_qp *ferroce_create_gsi_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init);

/* What keeps the first call from the device may be gone at the next one. */
static void opened_later(void)
{
	struct ibv_context *context = open_device();
	struct ibv_qp_init_attr init;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int before;

	MUST(pd = ibv_alloc_pd(context));
	MUST(cq = ibv_create_cq(context, 8, NULL, NULL, 0));
	init = qp_attr(cq);
	MUST(qp = ferroce_create_gsi_qp(pd, &init));
	NO_POINTER(rdma_create_event_channel(), EBUSY);
	before = entries("/proc/self/fd");
	NO_POINTER(rdma_create_event_channel(), EBUSY);
	expect("descriptors", entries("/proc/self/fd"), before);
	REFUSED(ibv_destroy_qp(qp), 0);
	REFUSED(ibv_destroy_cq(cq), 0);
	REFUSED(ibv_dealloc_pd(pd), 0);
	REFUSED(ibv_close_device(context), 0);
}

/* The program has no event of a request that it has not accepted: accepting it fails. */
static void taken_back(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *client = routed(channel, PORT), *server, *next;

	MUST(!rdma_connect(client, NULL));
	server = event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	MUST(!rdma_destroy_id(client));
	/* The next request comes behind the message that takes the first one back. */
	client = routed(channel, PORT);
	MUST(!rdma_connect(client, NULL));
	MUST((next = event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0)) != server);
	MINUS_ONE(rdma_accept(server, NULL), EINVAL);
	MINUS_ONE(rdma_reject(server, NULL, 0), EINVAL);
	MUST(!rdma_destroy_id(server));
	MUST(!rdma_reject(next, NULL, 0));
	MUST(event(channel, RDMA_CM_EVENT_REJECTED, 28) == client);
	MUST(!rdma_destroy_id(next));
	MUST(!rdma_destroy_id(client));
}

/* There is nothing to disconnect: the queue pair ends all the same. */
static void not_connected(struct rdma_event_channel *channel)
{
	struct sockaddr_in to = at("10.0.0.1", PORT + 1);
	struct rdma_cm_id *client = routed(channel, PORT), *server;

	give_qp(client);
	MUST(!rdma_connect(client, NULL));
	MUST(!rdma_disconnect(client));
	expect("client", state(client->qp), IBV_QPS_ERR);
	server = event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	MUST(!rdma_reject(server, NULL, 0));
	MUST(event(channel, RDMA_CM_EVENT_REJECTED, 28) == client);
	MUST(!rdma_disconnect(client));
	MUST(!rdma_destroy_id(server));
	rdma_destroy_qp(client);
	MUST(!rdma_destroy_id(client));

	client = routed_in(channel, RDMA_PS_UDP, PORT + 1);
	MUST(!rdma_connect(client, NULL));
	MUST(event(channel, RDMA_CM_EVENT_UNREACHABLE, 1) == client);
	MUST(!rdma_disconnect(client));
	MUST(!rdma_destroy_id(client));

	/* One that would wait for an event that does not come. */
	MUST(!rdma_create_id(NULL, &client, NULL, RDMA_PS_TCP));
	MUST(!rdma_resolve_addr(client, NULL, (struct sockaddr *)&to, 2000));
	MUST(!rdma_resolve_route(client, 2000));
	MINUS_ONE(rdma_connect(client, NULL), ECONNREFUSED);
	MINUS_ONE(rdma_disconnect(client), EINVAL);
	MUST(!rdma_destroy_id(client));
}

/* The peer accepts, and the queue pair is not where it can be connected. */
static void not_ready(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *client = routed(channel, PORT), *server;

	give_qp(client);
	MUST(!rdma_connect(client, NULL));
	server = event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	MUST(!rdma_accept(server, NULL));
	connect_to(client->qp, client->qp->qp_num);
	MUST(event(channel, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL) == client);
	expect("client", state(client->qp), IBV_QPS_ERR);
	MUST(!rdma_disconnect(client));
	MUST(event(channel, RDMA_CM_EVENT_REJECTED, 28) == server);
	MUST(!rdma_destroy_id(server));
	rdma_destroy_qp(client);
	MUST(!rdma_destroy_id(client));
}

/* The peer ends before the program looks: the failure is the last that it hears. */
static void ended_before(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *client = routed(channel, PORT), *server;
	struct rdma_cm_event *later;
	int flags;

	give_qp(client);
	MUST(!rdma_connect(client, NULL));
	server = event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	MUST(!rdma_accept(server, NULL));
	MUST(!rdma_destroy_id(server));
	connect_to(client->qp, client->qp->qp_num);
	/* Time for what the peer says; if it comes later, there is nothing to take back. */
	usleep(200000);
	MUST(event(channel, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL) == client);
	MUST((flags = fcntl(channel->fd, F_GETFL)) >= 0);
	MUST(!fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK));
	MINUS_ONE(rdma_get_cm_event(channel, &later), EAGAIN);
	MUST(!fcntl(channel->fd, F_SETFL, flags));
	rdma_destroy_qp(client);
	MUST(!rdma_destroy_id(client));
}

/* A server of datagrams, made in one call, whose listener goes before it. */
static void datagrams(struct rdma_event_channel *channel)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_UDP }, *found;
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_cm_id *listener, *client, *server;
	struct rdma_cm_event *established;
	uint8_t tos = 0x68;

	MUST(!rdma_getaddrinfo("10.0.0.1", "6002", &hints, &found));
	MUST(!rdma_create_ep(&listener, found, NULL, &init));
	rdma_freeaddrinfo(found);
	MUST(!rdma_listen(listener, 1));
	client = routed_in(channel, RDMA_PS_UDP, 6002);
	MUST(!rdma_set_option(client, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos));
	MUST(!rdma_connect(client, NULL));
	MUST(!rdma_get_request(listener, &server));
	MUST(server->event && server->qp);
	MUST(!rdma_accept(server, NULL));
	/* The end of the listener would wait for it. */
	MUST(!server->event);
	rdma_destroy_ep(listener);
	MUST(!rdma_get_cm_event(channel, &established));
	expect("event", established->event, RDMA_CM_EVENT_ESTABLISHED);
	expect("TOS", established->param.ud.ah_attr.grh.traffic_class, tos);
	MUST(!rdma_ack_cm_event(established));
	rdma_destroy_ep(server);
	MUST(!rdma_destroy_id(client));
}

/* A request that rdma_get_request gave and that is rejected: the end of its listener waits for nothing. */
static void rejected(struct rdma_event_channel *channel)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP }, *found;
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_cm_id *listener, *client, *server;

	MUST(!rdma_getaddrinfo("10.0.0.1", "6003", &hints, &found));
	MUST(!rdma_create_ep(&listener, found, NULL, &init));
	rdma_freeaddrinfo(found);
	MUST(!rdma_listen(listener, 1));
	client = routed(channel, 6003);
	give_qp(client);
	MUST(!rdma_connect(client, NULL));
	MUST(!rdma_get_request(listener, &server));
	MUST(!rdma_reject(server, NULL, 0));
	MUST(!server->event);
	rdma_destroy_ep(listener);
	MUST(event(channel, RDMA_CM_EVENT_REJECTED, 28) == client);
	rdma_destroy_ep(server);
	rdma_destroy_qp(client);
	MUST(!rdma_destroy_id(client));
}

int main(void)
{
	struct sockaddr_in own = at("0.0.0.0", PORT);
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;

	opened_later();
	MUST(channel = rdma_create_event_channel());
	MUST(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
	MUST(!rdma_bind_addr(listener, (struct sockaddr *)&own));
	MUST(!rdma_listen(listener, 1));
	taken_back(channel);
	not_connected(channel);
	not_ready(channel);
	ended_before(channel);
	MUST(!rdma_destroy_id(listener));
	datagrams(channel);
	rejected(channel);
	rdma_destroy_event_channel(channel);
	return wrong ? 1 : 0;
}
