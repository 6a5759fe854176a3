/* Memory that the program may not write is registered and sent. Prints what differs; exits with how many did. */

#include "check.h"

#include <fcntl.h>
#include <sys/mman.h>

static const char constants[8192] __attribute__((aligned(4096))) = "constants";

int main(void)
{
	struct ibv_context *context = open_device();
	int writes = IBV_ACCESS_LOCAL_WRITE;
	char *file = (char *)constants;
	struct ibv_send_wr *bad;
	struct ibv_mr *to, *mr;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	MUST(pd = ibv_alloc_pd(context));
	MUST(cq = ibv_create_cq(context, 8, NULL, NULL, 0));
	struct ibv_qp_init_attr init = qp_attr(cq);
	MUST(qp = ibv_create_qp(pd, &init));
	connect_to(qp, qp->qp_num);
	MUST(to = ibv_reg_mr(pd, memory, sizeof memory, writes | IBV_ACCESS_REMOTE_WRITE));
	for (int i = 0; i < 2; i++) {
		NO_POINTER(ibv_reg_mr(pd, file, sizeof constants, writes), EFAULT);
		MUST(mr = ibv_reg_mr(pd, file, sizeof constants, IBV_ACCESS_REMOTE_READ));
		MINUS_ONE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, writes), EFAULT);
		NO_POINTER(ibv_reg_mr(pd, file + 4096, 1, writes), EFAULT);
		struct ibv_sge list = { .addr = (uintptr_t)file, .length = sizeof constants, .lkey = mr->lkey };
		struct ibv_send_wr write = {
			.sg_list = &list,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { .remote_addr = (uintptr_t)memory, .rkey = to->rkey },
		};
		memset(memory, 0, sizeof memory);
		MUST(ibv_post_send(qp, &write, &bad) == 0);
		expect("status", completion(cq).status, IBV_WC_SUCCESS);
		expect("memory", memcmp(memory, file, sizeof memory), 0);
		REFUSED(ibv_dereg_mr(mr), 0);
		/* Then a file: that of the program itself. */
		int self = open("/proc/self/exe", O_RDONLY);
		file = mmap(NULL, sizeof constants, PROT_READ, MAP_SHARED, self, 0);
		MUST(file != MAP_FAILED);
	}
	REFUSED(ibv_destroy_qp(qp), 0);
	REFUSED(ibv_destroy_cq(cq), 0);
	REFUSED(ibv_dereg_mr(to), 0);
	REFUSED(ibv_dealloc_pd(pd), 0);
	REFUSED(ibv_close_device(context), 0);
	return wrong;
}
