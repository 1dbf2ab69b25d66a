/*
 * The library is loaded at run time, used, and unloaded. A child made by fork
 * in between gets an error for every call and ends as it likes; the parent goes
 * on as if nothing had been. Twice, as plug-ins are loaded again.
 */
#include <portals4.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The functions under their own names, found by dlsym. */
#define FUNCTIONS(F) \
    F(PtlInit) F(PtlFini) F(PtlNIInit) F(PtlNIFini) F(PtlGetPhysId) F(PtlPTAlloc) F(PtlCTAlloc) F(PtlCTGet) \
    F(PtlCTPoll) F(PtlLEAppend) F(PtlMDBind) F(PtlPut)

struct library {
    void *handle;
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
};

static void fail(const char *what, long got)
{
    fprintf(stderr, "dlopen_fork: %s (got %ld)\n", what, got);
    exit(1);
}

#define OK(call)                                        \
    do {                                                \
        int rc_ = (call);                               \
        if (rc_ != PTL_OK) {                            \
            fail(#call " should be PTL_OK", rc_);       \
        }                                               \
    } while (0)

static struct library load(void)
{
    struct library library;
    library.handle = dlopen("libportals.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library.handle == NULL) {
        fail(dlerror(), 0);
    }
#define FIND(name)                                                         \
    *(void **)&library.name = dlsym(library.handle, #name);                \
    if (*(void **)&library.name == NULL) {                                 \
        fail("no " #name, 0);                                              \
    }
    FUNCTIONS(FIND)
    return library;
}

/* One put to self, waited for with a bound. */
struct target {
    ptl_handle_ni_t ni;
    ptl_process_t   me;
    ptl_handle_ct_t ct;
    ptl_handle_md_t md;
    ptl_pt_index_t  portal;
    char            out[16], in[16];
    ptl_size_t      arrived;
};

static void open_target(const struct library *ptl, struct target *target)
{
    ptl_handle_le_t entry;
    memset(target, 0, sizeof *target);
    OK(ptl->PtlInit());
    OK(ptl->PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &target->ni));
    OK(ptl->PtlGetPhysId(target->ni, &target->me));
    OK(ptl->PtlPTAlloc(target->ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &target->portal));
    OK(ptl->PtlCTAlloc(target->ni, &target->ct));
    ptl_le_t le = {.start = target->in, .length = sizeof target->in, .ct_handle = target->ct, .uid = PTL_UID_ANY};
    le.options  = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM;
    OK(ptl->PtlLEAppend(target->ni, target->portal, &le, PTL_PRIORITY_LIST, NULL, &entry));
    ptl_md_t md = {.start = target->out, .length = sizeof target->out, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    OK(ptl->PtlMDBind(target->ni, &md, &target->md));
}

static void put_to_self(const struct library *ptl, struct target *target, const char *text)
{
    ptl_ct_event_t seen;
    unsigned int   which;
    strcpy(target->out, text);
    OK(ptl->PtlPut(target->md, 0, sizeof target->out, PTL_NO_ACK_REQ, target->me, target->portal, 0, 0, NULL, 0));
    target->arrived++;
    OK(ptl->PtlCTPoll(&target->ct, &target->arrived, 1, 20000, &seen, &which));
    if (strcmp(target->in, text) != 0) {
        fail("the put's text did not arrive", 0);
    }
}

/* In the child: no call may succeed, hang or crash. */
static int calls_are_refused(const struct library *ptl, const struct target *target)
{
    ptl_process_t   id;
    ptl_handle_ct_t ct;
    ptl_ct_event_t  seen;
    return ptl->PtlGetPhysId(target->ni, &id) != PTL_OK && ptl->PtlCTAlloc(target->ni, &ct) != PTL_OK &&
           ptl->PtlCTGet(target->ct, &seen) != PTL_OK &&
           ptl->PtlPut(target->md, 0, 1, PTL_NO_ACK_REQ, target->me, target->portal, 0, 0, NULL, 0) != PTL_OK;
}

static void fork_between(const struct library *ptl, const struct target *target)
{
    int   status;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(calls_are_refused(ptl, target) ? 0 : 1);
    }
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        fail("the child did not end by itself", status);
    }
    if (WEXITSTATUS(status) != 0) {
        fail("a call of the child succeeded", WEXITSTATUS(status));
    }
}

int main(void)
{
    alarm(60);
    for (int round = 0; round < 2; round++) {
        struct library ptl = load();
        struct target  target;
        open_target(&ptl, &target);
        put_to_self(&ptl, &target, "before");
        fork_between(&ptl, &target);
        put_to_self(&ptl, &target, "after");
        OK(ptl.PtlNIFini(target.ni));
        ptl.PtlFini();
        if (dlclose(ptl.handle) != 0) {
            fail(dlerror(), 0);
        }
    }
    return 0;
}
