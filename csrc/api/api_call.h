/*
 * What the entry points share.
 */
#ifndef TSVDI_API_CALL_H
#define TSVDI_API_CALL_H

#include "api/growing.h"
#include "backend/cuda_handle.h"
#include "backend/handle.h"

/* Begins a call on the handle's device; leave() ends it, also after a failure. */
static inline tsvd_status
tsvdi_call_enter(tsvd_handle *handle, tsvd_error *error)
{
    return handle->cuda != NULL ? tsvdi_cuda_enter(handle->cuda, error) : TSVD_OK;
}

static inline void
tsvdi_call_leave(tsvd_handle *handle, tsvd_status status)
{
    if (handle->cuda != NULL) {
        tsvdi_cuda_leave(handle->cuda, status);
    }
}

/* Calls a function of the core on the handle's device; ret is its status. */
#define TSVD_CALL(handle, error, call)                                                             \
    do {                                                                                           \
        ret = tsvdi_call_enter(handle, error);                                                     \
        if (ret == TSVD_OK) {                                                                      \
            ret = (call);                                                                          \
        }                                                                                          \
        tsvdi_call_leave(handle, ret);                                                             \
    } while (0)

/* Gives a failed call's error the text of its status, if it has no text yet. */
tsvd_status tsvdi_call_finish(tsvd_status status, tsvd_error *error);

#endif
