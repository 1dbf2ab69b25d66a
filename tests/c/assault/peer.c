/*
 * A process that executes commands, one a line, and answers each line with
 * one. `cargo xtask assault` sends commands to several of them, stops them, kills
 * them and looks at their memory.
 *
 * Areas of memory have the same addresses in every process, so that one can take
 * another's place. Events go to one queue, acknowledgements of floods to a counter.
 */
#define _GNU_SOURCE
#include <portals4.h>

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define AREAS 4
#define FIRST_ADDRESS UINT64_C(0x200000000000)
#define DISTANCE UINT64_C(0x100000000)
#define PORTAL 3
#define EVENTS 4096
#define WORDS 10
/* Longest wait for a first byte. */
#define PATIENCE_S 20

struct area {
    volatile unsigned char *start;
    size_t                  length;
    unsigned char           filled;
    ptl_handle_md_t         md, quiet;
};

static struct area     areas[AREAS];
static ptl_handle_ni_t interfaces[2];
static ptl_handle_eq_t queue;
static ptl_handle_ct_t acknowledged;
static char           *program;

static uint64_t number(char **words, int at)
{
    return words[at] == NULL ? 0 : strtoull(words[at], NULL, 0);
}

static struct area *area(char **words, int at)
{
    return &areas[number(words, at) % AREAS];
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void done(int code)
{
    if (code == PTL_OK) {
        printf("ok\n");
    } else {
        printf("refused %d\n", code);
    }
}

/* --- memory -------------------------------------------------------------------- */

static void make_area(char **words)
{
    struct area *made = area(words, 1);
    uint64_t     address = FIRST_ADDRESS + DISTANCE * (uint64_t)(made - areas);
    made->length = number(words, 2);
    made->filled = (unsigned char)number(words, 3);
    void *got = mmap((void *)address, made->length, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED) {
        printf("no memory\n");
        return;
    }
    made->start = got;
    memset(got, made->filled, made->length);
    printf("ok\n");
}

static void fill(char **words)
{
    struct area *which = area(words, 1);
    memset((void *)which->start, (int)number(words, 2), which->length);
    printf("ok\n");
}

static void count_like(char **words)
{
    const struct area *which = area(words, 1);
    unsigned char      byte = (unsigned char)number(words, 2);
    size_t             same = 0;
    for (size_t at = 0; at < which->length; at++) {
        same += which->start[at] == byte;
    }
    printf("%zu\n", same);
}

static void unmap(char **words)
{
    struct area *which = area(words, 1);
    munmap((void *)which->start, which->length);
    which->start = NULL;
    printf("ok\n");
}

/* --- interface ----------------------------------------------------------------- */

static int open_first(ptl_pid_t pid)
{
    int code = PtlInit();
    if (code != PTL_OK) {
        return code;
    }
    code = PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, pid, NULL, NULL, &interfaces[0]);
    if (code != PTL_OK) {
        PtlFini();
        return code;
    }
    ptl_pt_index_t index;
    if ((code = PtlEQAlloc(interfaces[0], EVENTS, &queue)) != PTL_OK ||
        (code = PtlCTAlloc(interfaces[0], &acknowledged)) != PTL_OK ||
        (code = PtlPTAlloc(interfaces[0], 0, queue, PORTAL, &index)) != PTL_OK) {
        PtlNIFini(interfaces[0]);
        PtlFini();
    }
    return code;
}

static int open_second(void)
{
    return PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                     &interfaces[1]);
}

/* offer AREA BITS [quiet] [overflow] */
static int offer(char **words)
{
    const struct area *which = area(words, 1);
    ptl_handle_me_t    handle;
    ptl_list_t         list = PTL_PRIORITY_LIST;
    ptl_me_t           me = {
                  .start = (void *)which->start,
                  .length = which->length,
                  .ct_handle = PTL_CT_NONE,
                  .uid = PTL_UID_ANY,
                  .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE,
                  .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                  .match_bits = number(words, 2),
    };
    for (int at = 3; words[at] != NULL; at++) {
        if (strcmp(words[at], "quiet") == 0) {
            me.options |= PTL_ME_EVENT_COMM_DISABLE;
        }
        if (strcmp(words[at], "overflow") == 0) {
            list = PTL_OVERFLOW_LIST;
        }
    }
    return PtlMEAppend(interfaces[0], PORTAL, &me, list, NULL, &handle);
}

static int bind_area(char **words)
{
    struct area *which = area(words, 1);
    ptl_md_t     md = {
            .start = (void *)which->start,
            .length = which->length,
            .options = 0,
            .eq_handle = queue,
            .ct_handle = PTL_CT_NONE,
    };
    int code = PtlMDBind(interfaces[0], &md, &which->md);
    if (code != PTL_OK) {
        return code;
    }
    md.eq_handle = PTL_EQ_NONE;
    md.ct_handle = acknowledged;
    md.options = PTL_MD_EVENT_CT_ACK;
    return PtlMDBind(interfaces[0], &md, &which->quiet);
}

/* put AREA LENGTH NID PID BITS */
static ptl_process_t target(char **words, int at)
{
    ptl_process_t process;
    process.phys.nid = (ptl_nid_t)number(words, at);
    process.phys.pid = (ptl_pid_t)number(words, at + 1);
    return process;
}

static int put(char **words)
{
    return PtlPut(area(words, 1)->md, 0, number(words, 2), PTL_ACK_REQ, target(words, 3), PORTAL,
                  number(words, 5), 0, NULL, 0);
}

static int get(char **words)
{
    return PtlGet(area(words, 1)->md, 0, number(words, 2), target(words, 3), PORTAL, number(words, 5), 0, NULL);
}

/* flood AREA LENGTH NID PID BITS COUNT: puts until one is refused */
static void flood(char **words)
{
    uint64_t accepted = 0, wanted = number(words, 6);
    int      code = PTL_OK;
    while (accepted < wanted && code == PTL_OK) {
        code = PtlPut(area(words, 1)->quiet, 0, number(words, 2), PTL_CT_ACK_REQ, target(words, 3), PORTAL,
                      number(words, 5), 0, NULL, 0);
        accepted += code == PTL_OK;
    }
    printf("accepted %" PRIu64 " code %d\n", accepted, code);
}

/* count NUMBER MILLISECONDS: until so many acknowledgements, or failures, are there */
static void count(char **words)
{
    ptl_ct_event_t seen = {0, 0};
    double         until = now() + (double)number(words, 2) / 1e3;
    do {
        unsigned int which;
        ptl_size_t   wanted = number(words, 1);
        PtlCTPoll(&acknowledged, &wanted, 1, 50, &seen, &which);
        PtlCTGet(acknowledged, &seen);
    } while (seen.success + seen.failure < number(words, 1) && now() < until);
    printf("%" PRIu64 " %" PRIu64 "\n", (uint64_t)seen.success, (uint64_t)seen.failure);
}

static const char *kind(ptl_event_kind_t type)
{
    switch (type) {
    case PTL_EVENT_PUT: return "put";
    case PTL_EVENT_GET: return "get";
    case PTL_EVENT_ACK: return "ack";
    case PTL_EVENT_SEND: return "send";
    case PTL_EVENT_REPLY: return "reply";
    default: return "other";
    }
}

/* event MILLISECONDS */
static void event(char **words)
{
    ptl_event_t  seen;
    unsigned int which;
    int          code = PtlEQPoll(&queue, 1, (ptl_time_t)number(words, 1), &seen, &which);
    if (code == PTL_EQ_EMPTY) {
        printf("none\n");
    } else if (code != PTL_OK && code != PTL_EQ_DROPPED) {
        printf("refused %d\n", code);
    } else {
        printf("%s %d %" PRIu64 " from %u:%u uid %u\n", kind(seen.type), (int)seen.ni_fail_type,
               (uint64_t)seen.mlength, seen.initiator.phys.nid, seen.initiator.phys.pid, seen.uid);
    }
}

static void finish(int which)
{
    double begun = now();
    int    code = PtlNIFini(interfaces[which]);
    printf("closed %d %.0f\n", code, (now() - begun) * 1e3);
}

/* Closes while a stream arrives: once its first byte is there. */
static void finish_amid(char **words)
{
    const struct area *which = area(words, 1);
    double             until = now() + PATIENCE_S;
    while (which->start[0] == which->filled && now() < until) {
    }
    if (which->start[0] == which->filled) {
        printf("nothing came\n");
    } else {
        finish(0);
    }
}

/* --- lines --------------------------------------------------------------------- */

static void obey(char **words)
{
    const char *word = words[0];
    if (strcmp(word, "open") == 0) {
        done(open_first((ptl_pid_t)number(words, 1)));
    } else if (strcmp(word, "open-second") == 0) {
        done(open_second());
    } else if (strcmp(word, "area") == 0) {
        make_area(words);
    } else if (strcmp(word, "fill") == 0) {
        fill(words);
    } else if (strcmp(word, "like") == 0) {
        count_like(words);
    } else if (strcmp(word, "unmap") == 0) {
        unmap(words);
    } else if (strcmp(word, "offer") == 0) {
        done(offer(words));
    } else if (strcmp(word, "bind") == 0) {
        done(bind_area(words));
    } else if (strcmp(word, "put") == 0) {
        done(put(words));
    } else if (strcmp(word, "get") == 0) {
        done(get(words));
    } else if (strcmp(word, "flood") == 0) {
        flood(words);
    } else if (strcmp(word, "count") == 0) {
        count(words);
    } else if (strcmp(word, "event") == 0) {
        event(words);
    } else if (strcmp(word, "close") == 0) {
        finish((int)number(words, 1) % 2);
    } else if (strcmp(word, "close-amid") == 0) {
        finish_amid(words);
    } else if (strcmp(word, "end") == 0) {
        PtlFini();
        printf("ok\n");
    } else if (strcmp(word, "become") == 0) {
        execl(program, program, (char *)NULL);
        printf("no exec\n");
    } else {
        printf("no such word: %s\n", word);
    }
}

int main(int argc, char **argv)
{
    char line[512];
    (void)argc;
    program = argv[0];
    setvbuf(stdin, NULL, _IONBF, 0); /* what an exec leaves to its successor */
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *words[WORDS + 1] = {NULL};
        int   count_of_words = 0;
        for (char *word = strtok(line, " \n"); word != NULL && count_of_words < WORDS; word = strtok(NULL, " \n")) {
            words[count_of_words++] = word;
        }
        if (count_of_words == 0) {
            continue;
        }
        if (strcmp(words[0], "quit") == 0) {
            return 0;
        }
        obey(words);
        fflush(stdout);
    }
    return 0;
}
