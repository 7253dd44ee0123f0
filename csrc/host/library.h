/*
 * Shared libraries that are opened when they are first needed, and then stay open.
 */
#ifndef TSVDI_LIBRARY_H
#define TSVDI_LIBRARY_H

#include "tsvd/tsvd.h"

/* The list of `count` directories as tsvdi_library_open() takes it, from the allocator. */
tsvd_status tsvdi_library_directories(const char *const *directory, int64_t count,
                                      const tsvd_allocator *allocator, tsvd_error *error,
                                      char **list);

/*
 * Opens the library `soname`: the one that the process holds already; else from the directories of
 * a list, in their order; else where the loader looks; else from /usr/local/cuda/lib64.
 *
 * directories  each ended by '\0', the last by a second '\0'; NULL: none
 * needed       a library that `soname` needs; in each directory it is opened first, since the
 *              loader may not look there; NULL: none
 * text         [size] the file that was opened; on failure every place that was tried, each with
 *              the loader's reason
 *
 * Returns what dlsym() takes; NULL: not found.
 */
void *tsvdi_library_open(const char *directories, const char *soname, const char *needed,
                         char *text, size_t size);

#endif
