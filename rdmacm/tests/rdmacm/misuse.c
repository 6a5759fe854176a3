/* Handles that are none, calls that do not fit the state, and a connection of the card to itself. */

#include <poll.h>
#include <sys/wait.h>
#include <time.h>

/* A child leaves what its parent holds. */
#define SANITIZER ":detect_leaks=0"
#include "cm.h"

static void garbage(void)
{
	struct rdma_cm_id *no_id = (void *)memory, *id;
	struct rdma_event_channel *no_channel = (void *)memory;
	struct rdma_cm_event *event;
	struct sockaddr_in any = at("0.0.0.0", 0);
	struct sockaddr *to = (struct sockaddr *)&any;
	struct rdma_conn_param param = {};
	struct ibv_qp_init_attr init = {};
	struct ibv_qp_attr attr = {};
	int mask, one = 1;

	MINUS_ONE(rdma_get_cm_event(no_channel, &event), EINVAL);
	MINUS_ONE(rdma_get_cm_event(NULL, &event), EINVAL);
	MINUS_ONE(rdma_ack_cm_event((void *)memory), EINVAL);
	MINUS_ONE(rdma_create_id(no_channel, &id, NULL, RDMA_PS_TCP), EINVAL);
	MINUS_ONE(rdma_create_id(NULL, &id, NULL, 77), EINVAL);
	MINUS_ONE(rdma_create_id(NULL, &id, NULL, RDMA_PS_IB), EOPNOTSUPP);
	MINUS_ONE(rdma_destroy_id(no_id), EINVAL);
	MINUS_ONE(rdma_destroy_id(NULL), EINVAL);
	MINUS_ONE(rdma_bind_addr(no_id, to), EINVAL);
	MINUS_ONE(rdma_listen(no_id, 1), EINVAL);
	MINUS_ONE(rdma_resolve_addr(no_id, NULL, to, 1), EINVAL);
	MINUS_ONE(rdma_resolve_route(no_id, 1), EINVAL);
	MINUS_ONE(rdma_connect(no_id, &param), EINVAL);
	MINUS_ONE(rdma_accept(no_id, &param), EINVAL);
	MINUS_ONE(rdma_reject(no_id, NULL, 0), EINVAL);
	MINUS_ONE(rdma_establish(no_id), EINVAL);
	MINUS_ONE(rdma_notify(no_id, IBV_EVENT_COMM_EST), EINVAL);
	MINUS_ONE(rdma_disconnect(no_id), EINVAL);
	MINUS_ONE(rdma_create_qp(no_id, NULL, &init), EINVAL);
	MINUS_ONE(rdma_init_qp_attr(no_id, &attr, &mask), EINVAL);
	MINUS_ONE(rdma_set_option(no_id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &one, 1), EINVAL);
	MINUS_ONE(rdma_migrate_id(no_id, NULL), EINVAL);
	MINUS_ONE(rdma_join_multicast(no_id, to, NULL), EOPNOTSUPP);
	expect("source port", rdma_get_src_port(no_id), 0);
	rdma_destroy_qp(no_id);
	rdma_destroy_ep(no_id);
	rdma_destroy_event_channel(no_channel);
	rdma_freeaddrinfo((void *)memory);
}

static void wrong_states(struct rdma_event_channel *channel)
{
	struct sockaddr_in own = at("10.0.0.1", 5000), strange = at("10.9.9.9", 0);
	struct sockaddr_in to = at("10.0.0.1", 5001);
	struct rdma_cm_id *id, *other;
	struct rdma_conn_param param = {};
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask, one = 1;

	MUST(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	MINUS_ONE(rdma_migrate_id(id, NULL), EINVAL);
	MUST(!rdma_destroy_id(id));
	MUST(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	MINUS_ONE(rdma_bind_addr(id, NULL), EINVAL);
	MINUS_ONE(rdma_bind_addr(id, (struct sockaddr *)&strange), EADDRNOTAVAIL);
	MINUS_ONE(rdma_connect(id, &param), EINVAL);
	MINUS_ONE(rdma_accept(id, &param), EINVAL);
	MINUS_ONE(rdma_reject(id, NULL, 0), EINVAL);
	MINUS_ONE(rdma_resolve_route(id, 1), EINVAL);
	MINUS_ONE(rdma_disconnect(id), EINVAL);
	MINUS_ONE(rdma_create_qp(id, NULL, &init), EINVAL);
	MINUS_ONE(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
	MINUS_ONE(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, 1), EINVAL);
	MINUS_ONE(rdma_set_option(id, 9, 9, &one, 4), ENOSYS);
	MINUS_ONE(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &one, 4), EOPNOTSUPP);
	MINUS_ONE(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, -1), EINVAL);
	MUST(!rdma_bind_addr(id, (struct sockaddr *)&own));
	expect("a domain is there", id->pd != NULL, 1);
	expect("source port", ntohs(rdma_get_src_port(id)), 5000);
	MINUS_ONE(rdma_bind_addr(id, (struct sockaddr *)&own), EINVAL);
	MUST(!rdma_create_id(channel, &other, NULL, RDMA_PS_TCP));
	MINUS_ONE(rdma_bind_addr(other, (struct sockaddr *)&own), EADDRINUSE);
	MUST(!rdma_listen(id, 1));
	MINUS_ONE(rdma_listen(id, 1), EINVAL);
	MUST(!rdma_destroy_id(id));
	MINUS_ONE(rdma_destroy_id(id), EINVAL);
	/* The port is free again. */
	MUST(!rdma_bind_addr(other, (struct sockaddr *)&own));
	MUST(!rdma_destroy_id(other));
}

/* An identifier of a port that others may have too. */
static struct rdma_cm_id *reusing(struct rdma_event_channel *channel, struct sockaddr_in *own)
{
	struct rdma_cm_id *id;
	int one = 1;

	MUST(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	MUST(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, sizeof one));
	MUST(!rdma_bind_addr(id, (struct sockaddr *)own));
	return id;
}

/* A port that many have is not listened at, and one that is listened at is nobody else's. */
static void one_listener(struct rdma_event_channel *channel)
{
	struct sockaddr_in own = at("10.0.0.1", 5002);
	struct rdma_cm_id *id = reusing(channel, &own), *other = reusing(channel, &own);

	MINUS_ONE(rdma_listen(id, 1), EADDRINUSE);
	MUST(!rdma_destroy_id(other));
	MUST(!rdma_listen(id, 1));
	MUST(!rdma_create_id(channel, &other, NULL, RDMA_PS_TCP));
	MINUS_ONE(rdma_bind_addr(other, (struct sockaddr *)&own), EADDRINUSE);
	MUST(!rdma_destroy_id(other));
	MUST(!rdma_destroy_id(id));
}

/* Addresses that no host on the wire has: nobody is asked. */
static void no_hosts(struct rdma_event_channel *channel)
{
	const char *ips[] = { "127.0.0.1", "255.255.255.255" };

	for (int i = 0; i < 2; i++) {
		struct sockaddr_in to = at(ips[i], 1);
		struct rdma_cm_id *id;

		MUST(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
		MUST(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 600000));
		MUST(event(channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT) == id);
		MUST(!rdma_destroy_id(id));
	}
}

static void to_itself(struct rdma_event_channel *channel)
{
	struct sockaddr_in own = at("0.0.0.0", 6000);
	struct rdma_conn_param param = { .responder_resources = 2, .initiator_depth = 3,
					 .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *listener, *client, *server;
	struct rdma_event_channel *other;
	struct rdma_cm_event *asked;
	struct pollfd readable;
	char data[200] = "data of the client";

	MUST(!rdma_create_id(channel, &listener, memory, RDMA_PS_TCP));
	MUST(!rdma_bind_addr(listener, (struct sockaddr *)&own));
	MUST(!rdma_listen(listener, 1));

	/* Nobody listens there. */
	client = routed(channel, 6001);
	MUST(!rdma_connect(client, NULL));
	MUST(event(channel, RDMA_CM_EVENT_REJECTED, 8) == client);
	MUST(!rdma_destroy_id(client));
	client = routed_in(channel, RDMA_PS_UDP, 6001);
	MUST(!rdma_connect(client, NULL));
	MUST(event(channel, RDMA_CM_EVENT_UNREACHABLE, 1) == client);
	MUST(!rdma_destroy_id(client));

	/* More data than a request holds. */
	client = routed(channel, 6000);
	give_qp(client);
	param.private_data = data;
	param.private_data_len = 57;
	MINUS_ONE(rdma_connect(client, &param), EINVAL);
	param.private_data_len = 56;
	MUST(!rdma_connect(client, &param));
	MINUS_ONE(rdma_connect(client, &param), EINVAL);
	MUST(!rdma_get_cm_event(channel, &asked));
	expect("event", asked->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = asked->id;
	MUST(asked->listen_id == listener && server->context == memory);
	expect("responder resources", asked->param.conn.responder_resources, 3);
	expect("initiator depth", asked->param.conn.initiator_depth, 2);
	expect("data", memcmp(asked->param.conn.private_data, data, 56), 0);
	expect("port", rdma_get_src_port(client), rdma_get_dst_port(server));
	MUST(!rdma_ack_cm_event(asked));
	/* Its events go elsewhere from here on. */
	MUST(other = rdma_create_event_channel());
	MUST(!rdma_migrate_id(server, other));
	give_qp(server);
	MUST(!rdma_accept(server, NULL));
	MINUS_ONE(rdma_accept(server, NULL), EINVAL);
	MUST(event(channel, RDMA_CM_EVENT_ESTABLISHED, 0) == client);
	MUST(event(other, RDMA_CM_EVENT_ESTABLISHED, 0) == server);
	expect("client", state(client->qp), IBV_QPS_RTS);
	expect("server", state(server->qp), IBV_QPS_RTS);
	MINUS_ONE(rdma_establish(client), EINVAL);
	MUST(!rdma_disconnect(client));
	expect("client", state(client->qp), IBV_QPS_ERR);
	readable = (struct pollfd){ .fd = other->fd, .events = POLLIN };
	expect("poll", poll(&readable, 1, 60000), 1);
	MUST(event(other, RDMA_CM_EVENT_DISCONNECTED, 0) == server);
	MUST(event(channel, RDMA_CM_EVENT_DISCONNECTED, 0) == client);
	MUST(!rdma_disconnect(server));
	rdma_destroy_qp(server);
	rdma_destroy_qp(client);
	MUST(!client->qp && !client->send_cq);
	MUST(!rdma_destroy_id(server));
	MUST(!rdma_destroy_id(client));

	/* The listener goes with a request that nobody took. */
	client = routed(channel, 6000);
	MUST(!rdma_connect(client, NULL));
	readable.fd = channel->fd;
	expect("poll", poll(&readable, 1, 60000), 1);
	MUST(!rdma_destroy_id(listener));
	MUST(event(channel, RDMA_CM_EVENT_REJECTED, 28) == client);
	MUST(!rdma_destroy_id(client));
	/* Nothing is told by a descriptor that does not block. */
	MUST(!fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	MINUS_ONE(rdma_get_cm_event(channel, &asked), EAGAIN);
	rdma_destroy_event_channel(other);
}

static void names(void)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *found;

	MINUS_ONE(rdma_getaddrinfo(NULL, NULL, &hints, &found), EINVAL);
	hints.ai_flags = RAI_NUMERICHOST;
	MINUS_ONE(rdma_getaddrinfo("no.such.name", "1", &hints, &found), ENODEV);
	MUST(!rdma_getaddrinfo("10.0.0.1", "7174", &hints, &found));
	MUST(found->ai_dst_len == sizeof(struct sockaddr_in) && !found->ai_src_len);
	expect("port", ((struct sockaddr_in *)found->ai_dst_addr)->sin_port, htons(7174));
	expect("type", found->ai_qp_type, IBV_QPT_RC);
	rdma_freeaddrinfo(found);
	rdma_freeaddrinfo(found);
	hints.ai_flags = RAI_PASSIVE;
	MUST(!rdma_getaddrinfo("::", "1", &hints, &found));
	MUST(found->ai_src_len == sizeof(struct sockaddr_in6) && !found->ai_dst_len);
	rdma_freeaddrinfo(found);
}

/* Peers are looked for without a thread for each. */
static void looked_for(struct rdma_event_channel *channel)
{
	struct sockaddr_in nobody = at("10.0.0.77", 1);
	struct rdma_cm_id *ids[64];
	int before = entries("/proc/self/task");

	for (int i = 0; i < 64; i++) {
		MUST(!rdma_create_id(channel, &ids[i], NULL, RDMA_PS_TCP));
		MUST(!rdma_resolve_addr(ids[i], NULL, (struct sockaddr *)&nobody, 5000));
	}
	expect("threads", entries("/proc/self/task"), before);
	/* Nor do those that look for others wait. */
	MUST(!rdma_destroy_id(routed(channel, 1)));
	for (int i = 0; i < 64; i++)
		MUST(!rdma_destroy_id(ids[i]));
}

/* A child has no connections, does not get the card of its parent, and waits for nobody when it ends. */
static void in_child(void)
{
	struct ibv_device **list;
	struct rdma_cm_id *id;

	wrong = 0;
	MUST(list = ibv_get_device_list(NULL));
	NO_POINTER(ibv_open_device(list[0]), EBUSY);
	ibv_free_device_list(list);
	MINUS_ONE(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), EBUSY);
	exit(wrong);
}

static void forked(void)
{
	time_t start = time(NULL);
	int status;
	pid_t child;

	fflush(stdout);
	MUST((child = fork()) >= 0);
	if (!child)
		in_child();
	MUST(waitpid(child, &status, 0) == child);
	expect("end of a child", status, 0);
	if (time(NULL) - start > 5)
		expect("seconds until a child ends", time(NULL) - start, 0);
}

int main(void)
{
	struct rdma_event_channel *channel;
	struct ibv_context **devices;
	int count;

	MUST(channel = rdma_create_event_channel());
	MUST(devices = rdma_get_devices(&count));
	MUST(count == 1 && devices[0] && !devices[1]);
	rdma_free_devices(devices);
	garbage();
	wrong_states(channel);
	one_listener(channel);
	no_hosts(channel);
	names();
	looked_for(channel);
	to_itself(channel);
	forked();
	rdma_destroy_event_channel(channel);
	return wrong ? 1 : 0;
}
