/*
 * A program that ends what it has begun as late as it can: in a handler of
 * atexit that it has set up before PtlInit, and in a destructor. Both may
 * still call the library.
 */
#include "rig.h"

static ptl_handle_ni_t early_ni, late_ni;

static void check(int rc, const char *what)
{
    if (rc != PTL_OK) {
        fprintf(stderr, "late_end: %s gives %d\n", what, rc);
        _exit(1);
    }
}

static void at_exit(void)
{
    check(PtlNIFini(early_ni), "PtlNIFini in atexit");
}

__attribute__((destructor)) static void at_end(void)
{
    ptl_handle_ct_t ct;
    check(PtlCTAlloc(late_ni, &ct), "PtlCTAlloc in a destructor");
    check(PtlCTFree(ct), "PtlCTFree in a destructor");
    check(PtlNIFini(late_ni), "PtlNIFini in a destructor");
    PtlFini();
    printf("late_end: ok\n");
}

int main(void)
{
    if (atexit(at_exit) != 0) {
        return 1;
    }
    check(PtlInit(), "PtlInit");
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                    &early_ni),
          "PtlNIInit");
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL,
                    NULL, &late_ni),
          "PtlNIInit of another");
    return 0;
}
