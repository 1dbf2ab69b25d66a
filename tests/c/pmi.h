/*
 * A small client of the PMI-1 wire protocol: lines of key=value words over the
 * socket that PMI_FD names. Enough for processes to learn each other's
 * addresses; one request is outstanding at a time.
 */
#ifndef LINTEL_TESTS_PMI_H
#define LINTEL_TESTS_PMI_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PMI_LINE 1024

struct pmi {
    int  fd;
    int  rank;
    int  size;
    char space[256]; /* name of the key-value space */
};

static void pmi_die(const char *why, const char *line)
{
    fprintf(stderr, "pmi: %s: %s\n", why, line);
    exit(1);
}

static int pmi_env(const char *name)
{
    const char *value = getenv(name);
    if (value == NULL) {
        pmi_die("start me with yod; missing in the environment", name);
    }
    return atoi(value);
}

/* Reads one line, without its newline. */
static void pmi_read_line(int fd, char *line, size_t size)
{
    size_t used = 0;
    for (;;) {
        ssize_t got = read(fd, line + used, 1);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got != 1 || used + 1 == size) {
            line[used] = '\0';
            pmi_die("the launcher closed or said too much", line);
        }
        if (line[used] == '\n') {
            line[used] = '\0';
            return;
        }
        used++;
    }
}

static void pmi_write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t put = write(fd, text, length);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            pmi_die("the launcher does not listen", strerror(errno));
        }
        text += put;
        length -= (size_t)put;
    }
}

/* Copies the value of `key` out of an answer; an absent one ends the program. */
static void pmi_value(const char *line, const char *key, char *out, size_t size)
{
    size_t length = strlen(key);
    const char *at = line;
    while (at != NULL) {
        if (strncmp(at, key, length) == 0 && at[length] == '=') {
            const char *value = at + length + 1;
            size_t      until = strcspn(value, " ");
            if (until >= size) {
                pmi_die("value too long", line);
            }
            memcpy(out, value, until);
            out[until] = '\0';
            return;
        }
        at = strchr(at, ' ');
        at = at == NULL ? NULL : at + 1;
    }
    pmi_die("expected word is absent", line);
}

/* Sends a request and checks that the answer is the one that belongs to it. */
static void pmi_ask(const struct pmi *pmi, char *answer, const char *expect, const char *format, ...)
{
    char    request[PMI_LINE];
    char    command[64];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(request, sizeof request, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof request) {
        pmi_die("request too long", format);
    }
    pmi_write_all(pmi->fd, request, (size_t)length);
    pmi_read_line(pmi->fd, answer, PMI_LINE);
    pmi_value(answer, "cmd", command, sizeof command);
    if (strcmp(command, expect) != 0) {
        pmi_die("unexpected answer", answer);
    }
}

static void pmi_check_rc(const char *answer)
{
    char rc[16];
    pmi_value(answer, "rc", rc, sizeof rc);
    if (atoi(rc) != 0) {
        pmi_die("refused", answer);
    }
}

static struct pmi pmi_begin(void)
{
    char       answer[PMI_LINE];
    struct pmi pmi = {pmi_env("PMI_FD"), pmi_env("PMI_RANK"), pmi_env("PMI_SIZE"), ""};
    pmi_ask(&pmi, answer, "response_to_init", "cmd=init pmi_version=1 pmi_subversion=1\n");
    pmi_check_rc(answer);
    pmi_ask(&pmi, answer, "maxes", "cmd=get_maxes\n");
    pmi_ask(&pmi, answer, "my_kvsname", "cmd=get_my_kvsname\n");
    pmi_value(answer, "kvsname", pmi.space, sizeof pmi.space);
    return pmi;
}

static inline void pmi_put(const struct pmi *pmi, const char *key, const char *value)
{
    char answer[PMI_LINE];
    pmi_ask(pmi, answer, "put_result", "cmd=put kvsname=%s key=%s value=%s\n", pmi->space, key, value);
    pmi_check_rc(answer);
}

static inline void pmi_get(const struct pmi *pmi, const char *key, char *value, size_t size)
{
    char answer[PMI_LINE];
    pmi_ask(pmi, answer, "get_result", "cmd=get kvsname=%s key=%s\n", pmi->space, key);
    pmi_check_rc(answer);
    pmi_value(answer, "value", value, size);
}

static void pmi_barrier(const struct pmi *pmi)
{
    char answer[PMI_LINE];
    pmi_ask(pmi, answer, "barrier_out", "cmd=barrier_in\n");
}

static void pmi_end(const struct pmi *pmi)
{
    char answer[PMI_LINE];
    pmi_ask(pmi, answer, "finalize_ack", "cmd=finalize\n");
}

#endif
