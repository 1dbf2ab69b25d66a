/* One-sided operations by Portals 4 on a direct entry: one_sided.h says what is measured. */
#include "one_sided.h"
#include <portals4.h>
#include <portals4_ext.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        int result = (call);                                                                       \
        if (result != PTL_OK) {                                                                    \
            fprintf(stderr, "%s: %d\n", #call, result);                                            \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define PORTAL 3

static ptl_handle_ni_t ni;
static ptl_handle_le_t entry;
static ptl_handle_md_t md;
static ptl_handle_ct_t done;
static ptl_size_t      operations;
static ptl_process_t   to;
static void           *window;

static void open_side(void)
{
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                 &ni));
    OK(PtlGetPhysId(ni, (ptl_process_t *)shared->address[rank]));
    OK(PtlMemAlloc(LARGEST, &window));
    memset(window, 0, LARGEST);
    ptl_pt_index_t portal;
    OK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PORTAL, &portal));
    ptl_le_t le = {.start = window, .length = LARGEST, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                   .options = PTL_LE_OP_PUT | PTL_LE_OP_GET};
    OK(PtlLEAppend(ni, PORTAL, &le, PTL_PRIORITY_LIST, NULL, &entry));
    OK(PtlCTAlloc(ni, &done));
    ptl_md_t whole = {.start = local, .length = LARGEST, .eq_handle = PTL_EQ_NONE,
                      .ct_handle = done, .options = PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK};
    OK(PtlMDBind(ni, &whole, &md));
}

static void connect_sides(void)
{
    memcpy(&to, shared->address[!rank], sizeof to);
}

static void operate(enum operation operation, size_t bytes)
{
    ptl_ct_event_t event;
    switch (operation) {
    case PUT:
        OK(PtlPut(md, 0, bytes, PTL_CT_ACK_REQ, to, PORTAL, 0, 0, NULL, 0));
        break;
    case GET:
        OK(PtlGet(md, 0, bytes, to, PORTAL, 0, 0, NULL));
        break;
    case FETCH_ADD:
        OK(PtlFetchAtomic(md, 0, md, 8, 8, to, PORTAL, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
        break;
    }
    OK(PtlCTWait(done, ++operations, &event));
}

static void poll_once(void)
{
    ptl_ct_event_t event;
    unsigned       which;
    ptl_size_t     never = PTL_SIZE_MAX;
    PtlCTPoll(&done, &never, 1, 0, &event, &which);
}

static void close_side(void)
{
    OK(PtlMDRelease(md));
    OK(PtlLEUnlink(entry));
    OK(PtlMemFree(window));
    OK(PtlNIFini(ni));
    PtlFini();
}
