/*
 * Shared libraries; see library.h.
 */
#define _GNU_SOURCE
#include "host/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "host/host.h"

/* Where the CUDA Toolkit's packages link the newest version; often unknown to the loader. */
#define TOOLKIT_DIRECTORY "/usr/local/cuda/lib64"

tsvd_status
tsvdi_library_directories(const char *const *directory, int64_t count,
                          const tsvd_allocator *allocator, tsvd_error *error, char **list)
{
    size_t bytes = 1;
    char *end;
    tsvd_status ret = TSVD_OK;

    *list = NULL;
    for (int64_t i = 0; i < count; i++) {
        bytes += strlen(directory[i]) + 1;
    }
    TSVD_TRY(tsvdi_host_alloc(allocator, bytes, error, (void **)list));
    end = *list;
    for (int64_t i = 0; i < count; i++) {
        if (directory[i][0] != '\0') { /* an empty string would end the list */
            end = stpcpy(end, directory[i]) + 1;
        }
    }
    *end = '\0';
out:
    return ret;
}

/* Opens a file; on failure adds it to text[size], with the reason. */
static void *
open_file(const char *path, char *text, size_t size)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    size_t used = strlen(text);
    const char *reason;

    if (library == NULL) {
        reason = dlerror();
        reason = reason ? reason : "unknown reason";
        /* the loader's text names the file that is missing, which may be one that `path` needs */
        (void)snprintf(text + used, size - used, "%s%s%s%s", used > 0 ? "; " : "",
                       strstr(reason, path) ? "" : path, strstr(reason, path) ? "" : ": ", reason);
    }
    return library;
}

static void *
open_in(const char *directory, const char *soname, const char *needed, char *text, size_t size)
{
    char path[PATH_MAX];

    if (needed && snprintf(path, sizeof path, "%s/%s", directory, needed) < (int)sizeof path) {
        (void)dlopen(path, RTLD_NOW | RTLD_LOCAL); /* a failure shows again below */
    }
    if (snprintf(path, sizeof path, "%s/%s", directory, soname) >= (int)sizeof path) {
        return NULL;
    }
    return open_file(path, text, size);
}

void *
tsvdi_library_open(const char *directories, const char *soname, const char *needed, char *text,
                   size_t size)
{
    void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    struct link_map *map;

    text[0] = '\0';
    while (directories != NULL && *directories != '\0' && library == NULL) {
        library = open_in(directories, soname, needed, text, size);
        directories += strlen(directories) + 1;
    }
    if (library == NULL) {
        library = open_file(soname, text, size);
    }
    if (library == NULL) {
        library = open_in(TOOLKIT_DIRECTORY, soname, needed, text, size);
    }
    if (library != NULL) {
        (void)snprintf(text, size, "%s",
                       dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : soname);
    }
    return library;
}
