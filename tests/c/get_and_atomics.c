/*
 * Rank 1 exposes memory and makes no call; rank 0 reads it, adds to it,
 * fetches from it and swaps in it, and sees what arithmetic says it should.
 */
#include "rig.h"

#define PORTAL 3

/* The exposed memory: one field per operation that is tried. */
struct exposed {
    unsigned char bytes[10000];
    int64_t       sum;
    double        product;
    uint32_t      bits;
    int64_t       fetched;
    uint64_t      swapped;
    uint64_t      compared;
    long double   wide;
};

struct origin {
    struct rig      rig;
    ptl_handle_ct_t ct;
    ptl_handle_md_t md;
    ptl_size_t      done; /* operations that have completed */
    union {
        unsigned char bytes[10000];
        int64_t       i64;
        uint64_t      u64;
        uint32_t      u32;
        double        f64;
        long double   wide;
    } out, in;
};

static ptl_size_t local(const struct origin *origin, const void *place)
{
    return (ptl_size_t)((const char *)place - (const char *)origin);
}

static void bind(struct origin *origin)
{
    ptl_md_t md = {.start = origin, .length = sizeof *origin, .eq_handle = PTL_EQ_NONE};
    OK(PtlCTAlloc(origin->rig.ni, &origin->ct));
    md.ct_handle = origin->ct;
    md.options   = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY;
    OK(PtlMDBind(origin->rig.ni, &md, &origin->md));
}

static void await(struct origin *origin)
{
    rig_count(origin->ct, ++origin->done);
}

static void get(struct origin *origin, size_t offset, size_t length)
{
    OK(PtlGet(origin->md, local(origin, &origin->in), length, rig_peer(&origin->rig), PORTAL, 0, offset, NULL));
    await(origin);
}

static void atomic(struct origin *origin, size_t offset, size_t length, ptl_op_t op, ptl_datatype_t type)
{
    OK(PtlAtomic(origin->md, local(origin, &origin->out), length, PTL_CT_ACK_REQ, rig_peer(&origin->rig), PORTAL, 0,
                 offset, NULL, 0, op, type));
    await(origin);
}

static void fetch(struct origin *origin, size_t offset, size_t length, ptl_op_t op, ptl_datatype_t type)
{
    OK(PtlFetchAtomic(origin->md, local(origin, &origin->in), origin->md, local(origin, &origin->out), length,
                      rig_peer(&origin->rig), PORTAL, 0, offset, NULL, 0, op, type));
    await(origin);
}

static void swap(struct origin *origin, size_t offset, const uint64_t *operand, ptl_op_t op)
{
    OK(PtlSwap(origin->md, local(origin, &origin->in), origin->md, local(origin, &origin->out), sizeof(uint64_t),
               rig_peer(&origin->rig), PORTAL, 0, offset, NULL, 0, operand, op, PTL_UINT64_T));
    await(origin);
}

static void read_in_pieces(struct origin *origin)
{
    static const size_t lengths[] = {0, 1, 8, 100, 4096, 10000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memset(origin->in.bytes, 0, sizeof origin->in.bytes);
        get(origin, 0, lengths[i]);
        rig_check_fill(origin->in.bytes, lengths[i], 9);
    }
}

static void compute_remotely(struct origin *origin)
{
    for (int i = 1; i <= 100; i++) {
        origin->out.i64 = i;
        atomic(origin, offsetof(struct exposed, sum), 8, PTL_SUM, PTL_INT64_T);
    }
    origin->out.f64 = 2.5;
    atomic(origin, offsetof(struct exposed, product), 8, PTL_PROD, PTL_DOUBLE);
    origin->out.u32 = 0xff00ff00;
    atomic(origin, offsetof(struct exposed, bits), 4, PTL_BXOR, PTL_UINT32_T);
    origin->out.wide = 0.125L;
    atomic(origin, offsetof(struct exposed, wide), sizeof(long double), PTL_SUM, PTL_LONG_DOUBLE);
}

static void fetch_and_swap(struct origin *origin)
{
    origin->out.i64 = 5;
    fetch(origin, offsetof(struct exposed, fetched), 8, PTL_MAX, PTL_INT64_T);
    SAME(origin->in.i64, -3);
    fetch(origin, offsetof(struct exposed, fetched), 8, PTL_MIN, PTL_INT64_T);
    SAME(origin->in.i64, 5);

    origin->out.u64 = 22;
    swap(origin, offsetof(struct exposed, swapped), NULL, PTL_SWAP);
    SAME(origin->in.u64, 11);

    uint64_t wrong = 1, right = 33;
    origin->out.u64 = 44;
    swap(origin, offsetof(struct exposed, compared), &wrong, PTL_CSWAP);
    SAME(origin->in.u64, 33);
    swap(origin, offsetof(struct exposed, compared), &right, PTL_CSWAP);
    SAME(origin->in.u64, 33);
    swap(origin, offsetof(struct exposed, compared), &right, PTL_CSWAP);
    SAME(origin->in.u64, 44);
}

static void expose(const struct rig *rig, struct exposed *memory)
{
    ptl_pt_index_t  portal;
    ptl_handle_le_t entry;
    ptl_le_t        le = {.start = memory, .length = sizeof *memory, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY};
    le.options = PTL_LE_OP_PUT | PTL_LE_OP_GET;
    rig_fill(memory->bytes, sizeof memory->bytes, 9);
    memory->sum      = 1000;
    memory->product  = 4.0;
    memory->bits     = 0x0f0f0f0f;
    memory->fetched  = -3;
    memory->swapped  = 11;
    memory->compared = 33;
    memory->wide     = 1.0L;
    OK(PtlPTAlloc(rig->ni, 0, PTL_EQ_NONE, PORTAL, &portal));
    OK(PtlLEAppend(rig->ni, PORTAL, &le, PTL_PRIORITY_LIST, NULL, &entry));
}

static void check_exposed(const struct exposed *memory)
{
    SAME(memory->sum, 1000 + 5050);
    SAME(memory->product == 10.0, 1);
    SAME(memory->bits, 0xf00ff00f);
    SAME(memory->wide == 1.125L, 1);
    SAME(memory->fetched, 5);
    SAME(memory->swapped, 22);
    SAME(memory->compared, 44);
}

int main(void)
{
    static struct exposed memory;
    static struct origin  origin;
    origin.rig = rig_begin(PTL_NI_NO_MATCHING);
    if (origin.rig.pmi.rank == 1) {
        expose(&origin.rig, &memory);
    } else {
        bind(&origin);
    }
    pmi_barrier(&origin.rig.pmi);
    if (origin.rig.pmi.rank == 0) {
        read_in_pieces(&origin);
        compute_remotely(&origin);
        fetch_and_swap(&origin);
    }
    pmi_barrier(&origin.rig.pmi);
    if (origin.rig.pmi.rank == 1) {
        check_exposed(&memory);
    }
    rig_end(&origin.rig);
    return 0;
}
