/* One process of a pair that uses UCX, with what FEATURES says. */
#include <ucp/api/ucp.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        ucs_status_t result = (call);                                                              \
        if (result != UCS_OK) {                                                                    \
            fprintf(stderr, "%s: %s\n", #call, ucs_status_string(result));                         \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* In struct shared: lengths, the address of the memory, then worker address and key. */
struct address {
    uint64_t window;
    uint64_t worker_bytes, key_bytes;
    char     bytes[];
};

static ucp_context_h context;
static ucp_worker_h  worker;
static ucp_mem_h     memory, local_memory;
static ucp_ep_h      ep;
static ucp_rkey_h    key;
static char         *window; /* this process's, */
static uint64_t      to;     /* and the other one's */

static void open_side(void)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = FEATURES};
    OK(ucp_init(&params, NULL, &context));
    ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SINGLE};
    OK(ucp_worker_create(context, &single, &worker));
    ucp_mem_map_params_t map = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length = LARGEST,
        .flags = UCP_MEM_MAP_ALLOCATE};
    OK(ucp_mem_map(context, &map, &memory));
    ucp_mem_attr_t attributes = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    OK(ucp_mem_query(memory, &attributes));
    window = attributes.address;
    memset(window, 0, LARGEST);
    ucp_mem_map_params_t own = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_ADDRESS,
        .length = LARGEST,
        .address = local};
    OK(ucp_mem_map(context, &own, &local_memory));

    struct address *mine = (struct address *)shared->address[rank];
    ucp_address_t  *name;
    void           *packed;
    size_t          name_bytes, packed_bytes;
    OK(ucp_worker_get_address(worker, &name, &name_bytes));
    OK(ucp_rkey_pack(context, memory, &packed, &packed_bytes));
    if (sizeof *mine + name_bytes + packed_bytes > MOST_ADDRESS) {
        fprintf(stderr, "the address is too long\n");
        _exit(1);
    }
    mine->window = (uint64_t)(uintptr_t)window;
    mine->worker_bytes = name_bytes;
    mine->key_bytes = packed_bytes;
    memcpy(mine->bytes, name, name_bytes);
    memcpy(mine->bytes + name_bytes, packed, packed_bytes);
    ucp_worker_release_address(worker, name);
    ucp_rkey_buffer_release(packed);
}

static void connect_sides(void)
{
    const struct address *peer = (const struct address *)shared->address[!rank];
    ucp_ep_params_t       params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                    .address = (const ucp_address_t *)peer->bytes};
    OK(ucp_ep_create(worker, &params, &ep));
    OK(ucp_ep_rkey_unpack(ep, peer->bytes + peer->worker_bytes, &key));
    to = peer->window;
}

static void await(ucs_status_ptr_t request)
{
    ucs_status_t status = UCS_OK;
    if (UCS_PTR_IS_PTR(request)) {
        while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
            ucp_worker_progress(worker);
        ucp_request_free(request);
    } else {
        status = UCS_PTR_STATUS(request);
    }
    OK(status);
}

static void poll_once(void)
{
    ucp_worker_progress(worker);
}

static void close_side(void)
{
    ucp_request_param_t none = {0};
    ucp_rkey_destroy(key);
    await(ucp_ep_close_nbx(ep, &none));
    OK(ucp_mem_unmap(context, local_memory));
    OK(ucp_mem_unmap(context, memory));
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}
