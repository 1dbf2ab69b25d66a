/* One-sided operations by UCX into memory that it has allocated: one_sided.h says what is
 * measured. */
#include "one_sided.h"
#define FEATURES (UCP_FEATURE_RMA | UCP_FEATURE_AMO64)
#include "ucx_side.h"

static void operate(enum operation operation, size_t bytes)
{
    ucp_request_param_t none = {0};
    ucp_request_param_t adding = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
                                                  UCP_OP_ATTR_FIELD_REPLY_BUFFER,
                                  .datatype = ucp_dt_make_contig(8),
                                  .reply_buffer = local};
    switch (operation) {
    case PUT:
        await(ucp_put_nbx(ep, local, bytes, to, key, &none));
        await(ucp_ep_flush_nbx(ep, &none));
        break;
    case GET:
        await(ucp_get_nbx(ep, local, bytes, to, key, &none));
        break;
    case FETCH_ADD:
        await(ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_ADD, local + 8, 1, to, key, &adding));
        break;
    }
}
