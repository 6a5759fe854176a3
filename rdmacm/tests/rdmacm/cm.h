/* What the programs of the tests share: addresses, and identifiers on their way to a connection of the card to itself. */

#include <arpa/inet.h>
#include <dirent.h>
#include <rdma/rdma_cma.h>

#include "check.h"

static inline struct sockaddr_in at(const char *ip, int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	MUST(inet_pton(AF_INET, ip, &address.sin_addr) == 1);
	return address;
}

static inline struct rdma_cm_id *event(struct rdma_event_channel *channel, int kind, int status)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	MUST(!rdma_get_cm_event(channel, &event));
	if (event->event != kind)
		printf("%s, expected %s\n", rdma_event_str(event->event), rdma_event_str(kind));
	expect("status", event->status, status);
	id = event->id;
	MUST(!rdma_ack_cm_event(event));
	MINUS_ONE(rdma_ack_cm_event(event), EINVAL);
	return id;
}

/* Brings an identifier to where it may connect. */
static inline struct rdma_cm_id *routed_in(struct rdma_event_channel *channel, enum rdma_port_space space, int port)
{
	struct sockaddr_in to = at("10.0.0.1", port);
	struct rdma_cm_id *id;

	MUST(!rdma_create_id(channel, &id, NULL, space));
	MUST(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000));
	MUST(event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0) == id);
	MUST(id->verbs && id->port_num == 1);
	MUST(!rdma_resolve_route(id, 2000));
	MUST(event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0) == id);
	MUST(id->route.num_paths == 1 && id->route.path_rec->mtu == IBV_MTU_1024);
	return id;
}

static inline struct rdma_cm_id *routed(struct rdma_event_channel *channel, int port)
{
	return routed_in(channel, RDMA_PS_TCP, port);
}

static inline struct ibv_qp *give_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	MUST(!rdma_create_qp(id, NULL, &init));
	MUST(id->qp && id->send_cq && id->recv_cq && id->pd);
	MINUS_ONE(rdma_create_qp(id, NULL, &init), EINVAL);
	return id->qp;
}

static inline int state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	MUST(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

/* Entries of a folder that tells of this process. */
static inline int entries(const char *folder)
{
	int count = 0;
	DIR *found;

	MUST(found = opendir(folder));
	while (readdir(found))
		count++;
	closedir(found);
	return count;
}
