/*
 * Shared libraries that are opened when they are first needed, and then stay open.
 */
#ifndef TSVDI_LIBRARY_H
#define TSVDI_LIBRARY_H

#include <stddef.h>

/*
 * Opens the library `soname`: the one that the process holds already; else from the directories
 * of tsvd_cuda_library_paths(), in their order; else where the loader looks; else from
 * /usr/local/cuda/lib64.
 *
 * needed   a library that this one needs: in a directory of ours it is opened first, since the
 *          loader may not look there; NULL: none
 * text     [size] the file that was opened; on failure every place that was tried, each with
 *          the loader's reason
 *
 * Returns what dlsym() takes; NULL: not found.
 */
void *tsvdi_library_open(const char *soname, const char *needed, char *text, size_t size);

#endif
