/*
 * TSVD_CPU_KERNELS: which names are accepted, and the error for others.  The library reads it while
 * a program is loaded, so the test runs itself again.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "tsvd/tsvd.h"

static const char *const names[] = {"generic", "avx2", "avx512"};
enum { NAMES = 3 };

/* In the second run: 0 if a handle can be made, and the kernels are those of the given name; 1 if
   it is refused with an error that mentions the given word. */
static int
question(const char *expected)
{
    tsvd_handle *handle = NULL;
    tsvd_error error;
    tsvd_status status;

    unsetenv("TSVD_CPU_KERNELS"); /* it has been read */
    status = tsvd_create(NULL, &handle, &error);
    tsvd_destroy(handle);
    if (status == TSVD_OK) {
        return strcmp(tsvd_cpu_kernels(), expected) == 0 ? 0 : 2;
    }
    return status == TSVD_ERR_ARGUMENT && handle == NULL && error.status == status &&
                   strstr(error.text, "TSVD_CPU_KERNELS") != NULL && strstr(error.text, expected)
               ? 1
               : 3;
}

/* Runs question(expected) with the variable set to `value`, NULL: not set. */
static int
ask(const char *value, const char *expected)
{
    const pid_t child = fork();
    int status = -1;

    if (child == 0) {
        if (value != NULL) {
            setenv("TSVD_CPU_KERNELS", value, 1);
        } else {
            unsetenv("TSVD_CPU_KERNELS");
        }
        execl("/proc/self/exe", "test_kernels", expected, (char *)NULL);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : -1;
}

int
main(int argc, char **argv)
{
    const char *bad[] = {"sse2", "AVX2", "avx", "avx512 ", "generic,avx2"};
    int best = NAMES - 1;

    if (argc > 1) {
        return question(argv[1]);
    }
    while (best > 0 && ask(NULL, names[best]) != 0) {
        best--;
    }
    CHECK(ask(NULL, names[best]) == 0, "no name is that of the kernels");
    CHECK(ask("", names[best]) == 0, "empty: as if it were not set");
    for (int i = 0; i < NAMES; i++) {
        if (i <= best) {
            CHECK(ask(names[i], names[i]) == 0, "%s", names[i]);
        } else { /* the error names the best */
            CHECK(ask(names[i], names[best]) == 1, "%s on a processor without it", names[i]);
        }
    }
    for (int i = 0; i < 5; i++) {
        CHECK(ask(bad[i], "must be generic, avx2 or avx512") == 1, "\"%s\"", bad[i]);
    }
    return report();
}
