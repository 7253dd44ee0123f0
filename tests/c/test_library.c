/*
 * Where a library is looked for, and in which order.  The probes are in the directory TSVD_PROBES,
 * in the folders 1, where the loader looks too, and 2 (CMakeLists.txt).
 */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "host/host.h"
#include "host/library.h"
#include "tsvd/tsvd.h"

#define PROBE "libtsvd_probe.so.7"
#define NEEDED "libtsvd_needed.so.7"

/* Which probe it is; 0: none. */
static int
number_of(void *library)
{
    int (*probe)(void) = NULL;
    void *address = library ? dlsym(library, "probe") : NULL;

    memcpy(&probe, &address, sizeof probe);
    return probe ? probe() : 0;
}

/* The list that libraries are looked for in. */
static char *directories;

static void
tell(const char *first, const char *second, const char *third)
{
    const char *const directory[] = {first, second, third};
    tsvd_error error;

    tsvdi_host_free(&tsvdi_host_allocator, directories);
    CHECK(tsvdi_library_directories(directory, 3, &tsvdi_host_allocator, &error, &directories) ==
              TSVD_OK,
          "%s", error.text);
}

/* The place of `part` in a text, which must be there after `from`. */
static const char *
find(const char *text, const char *from, const char *part)
{
    const char *at = from ? strstr(from, part) : NULL;

    CHECK(at != NULL, "\"%s\" in \"%s\"", part, text);
    return at;
}

static void
test_nothing_found(void)
{
    char text[1024];
    const char *at = text;

    tell("/nowhere", "", TSVD_PROBES "/1");
    CHECK(!tsvdi_library_open(directories, "libtsvd_none.so.1", NULL, text, sizeof text), "%s",
          text);
    at = find(text, at, "/nowhere/libtsvd_none.so.1");
    at = find(text, at, TSVD_PROBES "/1/libtsvd_none.so.1");
    at = find(text, at, "; libtsvd_none.so.1");
    (void)find(text, at, "; /usr/local/cuda/lib64/libtsvd_none.so.1");
    for (size_t size = 1; size < 100; size++) { /* too short for the whole text */
        memset(text, 'x', sizeof text);
        CHECK(!tsvdi_library_open(directories, "libtsvd_none.so.1", NULL, text, size), "%s", text);
        CHECK(memchr(text, '\0', size) && text[size] == 'x', "size %zu", size);
    }
}

static void
test_no_library(void)
{
    char text[1024], directory[] = "/tmp/tsvd_XXXXXX", path[64];
    FILE *file;

    CHECK(mkdtemp(directory) != NULL, "%s", directory);
    (void)snprintf(path, sizeof path, "%s/libtsvd_text.so.1", directory);
    file = fopen(path, "w");
    CHECK(file && fputs("no library", file) >= 0 && fclose(file) == 0, "%s", path);
    tell(directory, "", "");
    CHECK(!tsvdi_library_open(directories, "libtsvd_text.so.1", NULL, text, sizeof text), "%s",
          text);
    (void)find(text, text, path);
    (void)unlink(path);
    (void)rmdir(directory);
}

/* A library from the second directory, with the library that it needs, before the loader's.  Later
   calls get the same one, whatever else could be found. */
static void
test_order(void)
{
    char text[1024];
    void *library;

    CHECK(!dlopen(NEEDED, RTLD_NOW | RTLD_NOLOAD), "held already");
    tell("/nowhere", TSVD_PROBES "/2", TSVD_PROBES "/1");
    library = tsvdi_library_open(directories, PROBE, NEEDED, text, sizeof text);
    CHECK(number_of(library) == 2, "probe %d", number_of(library));
    CHECK(strcmp(text, TSVD_PROBES "/2/" PROBE) == 0, "%s", text);
    CHECK(number_of(dlopen(NEEDED, RTLD_NOW | RTLD_NOLOAD)) == 3, "not opened first");

    tell("/nowhere", TSVD_PROBES "/1", "");
    library = tsvdi_library_open(directories, PROBE, NULL, text, sizeof text);
    CHECK(number_of(library) == 2, "probe %d", number_of(library));
    CHECK(strcmp(text, TSVD_PROBES "/2/" PROBE) == 0, "%s", text);
}

static void
test_the_loaders_own(void)
{
    char text[1024];

    tell("/nowhere", "", "");
    CHECK(tsvdi_library_open(directories, "libm.so.6", NULL, text, sizeof text) != NULL, "%s",
          text);
    (void)find(text, text, "libm.so.6");
}

int
main(void)
{
#ifndef __GLIBC__
    printf("skipped: the loader is not that of glibc, which names libraries otherwise\n");
    return 77;
#endif
    test_nothing_found();
    test_no_library();
    test_order();
    test_the_loaders_own();
    tsvdi_host_free(&tsvdi_host_allocator, directories);
    return report();
}
