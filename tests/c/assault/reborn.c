/*
 * Runs a program as the process of a given number, which must be free:
 * reborn NUMBER PROGRAM ARGUMENTS. Needs CAP_CHECKPOINT_RESTORE in its process
 * namespace. Ends as the program does.
 */
#define _GNU_SOURCE
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "reborn NUMBER PROGRAM ARGUMENTS\n");
        return 2;
    }
    pid_t             wanted = atoi(argv[1]);
    struct clone_args how;
    memset(&how, 0, sizeof how);
    how.exit_signal = SIGCHLD;
    how.set_tid = (uint64_t)(uintptr_t)&wanted;
    how.set_tid_size = 1;
    long child = syscall(SYS_clone3, &how, sizeof how);
    if (child < 0) {
        perror("reborn: clone3");
        return 1;
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    int status;
    if (waitpid((pid_t)child, &status, 0) < 0) {
        perror("reborn: waitpid");
        return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
