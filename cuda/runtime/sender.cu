/*
 * The sender; see sender.h.
 *
 * It is a thread with a queue of items, which it takes in order.  Results in pageable memory go
 * through two pinned buffers: while the device fills one, the threads of the host empty the other.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "runtime/context.h"
#include "runtime/failure.h"
#include "runtime/sender.h"
#include "runtime/transfer.h"

extern "C" {
#include "host/environment.h"
}

/* The least page of the systems that have CUDA, and a huge one. */
#define PAGE_BYTES ((size_t)4096)
#define HUGE_BYTES ((size_t)2 << 20)

/* Items of the queue, at most. */
enum { ITEMS = 64 };

enum item_kind { SEND, TOUCH, RELEASE };

struct item {
    enum item_kind kind;
    struct cuda_transfer transfer; /* TOUCH: `width` bytes at `to`; RELEASE: d_from is given back */
    bool direct;                   /* SEND: a single row to pinned memory */
    cudaEvent_t ready; /* SEND, RELEASE: the device has done what was on the stream before;
                                  NULL: not made yet */
};

struct cuda_sender {
    struct cuda_call call; /* a copy, with `own` for its errors */
    tsvd_error own;
    pthread_t thread;
    unsigned forks; /* of the process when the thread was started */
    int threads;    /* of the host, that copy and touch */

    /* The sender's own: the piece in the pinned buffer that is to be emptied next. */
    struct cuda_transfer pending; /* rows = 0: there is none */
    int turn;                     /* the buffer that is filled next */

    /* The lock protects all that follows. */
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct item item[ITEMS]; /* item i has place i % ITEMS */
    int64_t given, taken;    /* items so far: those up to `taken` may be overwritten */
    int64_t released;        /* items up to the last RELEASE */
    int64_t before;          /* released at the last wait_releases() */
    bool busy;               /* an item is under work, or copies are under way */
    bool dropping;           /* only RELEASE is still done */
    bool ending;             /* no item will come */
    tsvd_status status;      /* of all so far */
    tsvd_error error;        /* the first failure */
};

static_assert(sizeof(struct cuda_sender) <= SENDER_BYTES, "what a plan tells");

/* The senders that there are, atomic. */
static int senders;

struct copy_job {
    struct cuda_transfer transfer;
    const char *from; /* the same bytes in pinned memory, row after row */
    bool past_cache;
};

/* memcpy() that writes past the cache.  So the memory need not be read first, which takes a third
   of its time.  That gains where several devices deliver at once, and the memory is what all wait
   for: two H200 took 226 ms in the place of 290 for 17 GB.  One alone took 6 % longer. */
static void
copy_past_cache(char *to, const char *from, size_t bytes)
{
#if defined(__x86_64__)
    enum { LINE = 64, WORDS = LINE / (int)sizeof(__m128i), SHORT = 64 * LINE };
    const size_t before = -(uintptr_t)to % LINE;

    if (bytes >= SHORT) {
        memcpy(to, from, before);
        to += before;
        from += before;
        bytes -= before;
        for (; bytes >= LINE; bytes -= LINE, to += LINE, from += LINE) {
            __m128i word[WORDS];

            for (int i = 0; i < WORDS; i++) {
                word[i] = _mm_loadu_si128((const __m128i *)from + i);
            }
            for (int i = 0; i < WORDS; i++) {
                _mm_stream_si128((__m128i *)to + i, word[i]);
            }
        }
        _mm_sfence(); /* before another thread is told that they are there */
    }
#endif
    memcpy(to, from, bytes);
}

static tsvd_status
copy_part(void *arg, int worker, int64_t index)
{
    const struct copy_job *job = (const struct copy_job *)arg;
    const struct cuda_transfer *p = &job->transfer;
    const size_t bytes = p->width * p->rows;
    size_t at = (size_t)index * COPY_BYTES, end = at + COPY_BYTES;

    (void)worker;
    end = end < bytes ? end : bytes;
    while (at < end) {
        const size_t row = at / p->width, column = at % p->width, left = p->width - column;
        const size_t count = left < end - at ? left : end - at;

        if (job->past_cache) {
            copy_past_cache(p->to + row * p->to_pitch + column, job->from + at, count);
        } else {
            memcpy(p->to + row * p->to_pitch + column, job->from + at, count);
        }
        at += count;
    }
    return TSVD_OK;
}

/* Empties the pinned buffer that waits. */
static tsvd_status
empty(struct cuda_sender *s)
{
    const int full = 1 - s->turn;
    const bool several = __atomic_load_n(&senders, __ATOMIC_RELAXED) > 1;
    struct copy_job job = {s->pending, (const char *)s->call.device->pinned[full], several};
    const size_t bytes = s->pending.width * s->pending.rows;
    tsvd_status ret = TSVD_OK;

    s->pending.rows = 0;
    if (bytes > 0) {
        CUDA_TRY(&s->call, cudaEventSynchronize(s->call.device->copied[full]));
        TSVD_TRY(tsvdi_host_for_each(s->threads, (int64_t)((bytes + COPY_BYTES - 1) / COPY_BYTES),
                                     copy_part, &job));
    }
out:
    return ret;
}

/* Enqueues the copy of a transfer to pinned memory, row after row. */
static tsvd_status
enqueue(struct cuda_call *call, const struct cuda_transfer *p, void *to)
{
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaMemcpyAsync(to, p->d_from, p->width * p->rows, cudaMemcpyDeviceToHost,
                                   call->device->sending));
out:
    return ret;
}

/* Has one pinned buffer filled, and empties the other. */
static tsvd_status
pass(struct cuda_sender *s, struct cuda_transfer piece)
{
    struct cuda_call *call = &s->call;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(enqueue(call, &piece, call->device->pinned[s->turn]));
    CUDA_TRY(call, cudaEventRecord(call->device->copied[s->turn], call->device->sending));
    TSVD_TRY(empty(s));
    s->pending = piece;
    s->turn = 1 - s->turn;
out:
    return ret;
}

/* Cuts a transfer into pieces that a pinned buffer holds: rows, or parts of its only row. */
static tsvd_status
send_pieces(struct cuda_sender *s, struct cuda_transfer p)
{
    tsvd_status ret = TSVD_OK;

    while (p.rows > 0 && p.width > 0) {
        struct cuda_transfer piece = p;

        if (p.rows == 1) {
            piece.width = p.width < PINNED_BYTES ? p.width : PINNED_BYTES;
            p.to += piece.width;
            p.d_from += piece.width;
            p.width -= piece.width;
        } else {
            piece.rows = PINNED_BYTES / p.width < p.rows ? PINNED_BYTES / p.width : p.rows;
            p.to += piece.rows * p.to_pitch;
            p.d_from += piece.rows * p.width;
            p.rows -= piece.rows;
        }
        TSVD_TRY(pass(s, piece));
    }
out:
    return ret;
}

static tsvd_status
send_item(struct cuda_sender *s, const struct item *item)
{
    const struct cuda_transfer *p = &item->transfer;
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(&s->call, cudaStreamWaitEvent(s->call.device->sending, item->ready, 0));
    TSVD_TRY(item->direct ? enqueue(&s->call, p, p->to) : send_pieces(s, *p));
out:
    return ret;
}

/* Makes the system give pages to part `index` of a result, if its first page is not there.  Their
   contents stay: small results may be arriving there.  Parts end where huge pages do: else two
   threads would both clear one. */
static tsvd_status
touch_part(void *arg, int worker, int64_t index)
{
    const struct cuda_transfer *p = (const struct cuda_transfer *)arg;
    const uintptr_t first = (uintptr_t)p->to, last = first + p->width;
    const uintptr_t from = first / HUGE_BYTES * HUGE_BYTES + (uintptr_t)index * TOUCH_BYTES;
    const uintptr_t begin = from > first ? from : first;
    const uintptr_t end = from + TOUCH_BYTES < last ? from + TOUCH_BYTES : last;
    const uintptr_t page = (begin + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    unsigned char there = 0;

    (void)worker;
    if (end <= page || (mincore((void *)page, PAGE_BYTES, &there) == 0 && (there & 1))) {
        return TSVD_OK;
    }
#ifdef MADV_POPULATE_WRITE
    if (madvise((void *)page, (end - page) / PAGE_BYTES * PAGE_BYTES, MADV_POPULATE_WRITE) == 0) {
        return TSVD_OK;
    }
#endif
    for (uintptr_t at = page; at < end; at += PAGE_BYTES) {
        (void)__atomic_fetch_add((char *)at, 0, __ATOMIC_RELAXED);
    }
    return TSVD_OK;
}

/* Gives memory back after the copies that read it and after what was on the call's stream. */
static tsvd_status
release(struct cuda_sender *s, const struct item *item)
{
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(&s->call, cudaStreamWaitEvent(s->call.device->sending, item->ready, 0));
out:
    if (ret != TSVD_OK) {
        (void)cudaEventSynchronize(item->ready);
    }
    if (cudaFreeAsync((void *)item->transfer.d_from, s->call.device->sending) != cudaSuccess) {
        tsvdi_cuda_forget();
    }
    return ret;
}

static tsvd_status
do_item(struct cuda_sender *s, const struct item *item)
{
    switch (item->kind) {
    case SEND:
        return send_item(s, item);
    case TOUCH:
        return tsvdi_host_for_each(s->threads,
                                   (int64_t)((item->transfer.width + HUGE_BYTES) / TOUCH_BYTES + 1),
                                   touch_part, (void *)&item->transfer);
    case RELEASE:
        return release(s, item);
    }
    return TSVD_OK;
}

/* Finishes what is under way. */
static tsvd_status
settle(struct cuda_sender *s)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(empty(s));
    CUDA_TRY(&s->call, cudaStreamSynchronize(s->call.device->sending));
out:
    return ret;
}

/* Keeps the first failure, and drops what comes after it.  The sender is locked. */
static void
note_status(struct cuda_sender *s, tsvd_status status, const tsvd_error *error)
{
    if (status != TSVD_OK && s->status == TSVD_OK) {
        s->status = status;
        s->error = *error;
        s->dropping = true;
    }
}

/* Does the next item, or finishes what is under way; or waits.  The sender is locked. */
static void
advance(struct cuda_sender *s)
{
    const bool any = s->taken < s->given;
    const struct item *item = &s->item[s->taken % ITEMS];
    const bool leave_out = any && s->dropping && item->kind != RELEASE;
    tsvd_status status = TSVD_OK;

    if (!any && !s->busy) {
        (void)pthread_cond_wait(&s->change, &s->lock);
        return;
    }
    s->busy = true;
    (void)pthread_mutex_unlock(&s->lock);
    if (!any) {
        status = settle(s);
    } else if (!leave_out) {
        status = do_item(s, item);
    }
    (void)pthread_mutex_lock(&s->lock);
    note_status(s, status, &s->own);
    s->taken += any;
    s->busy = any; /* its copies may be under way */
    (void)pthread_cond_broadcast(&s->change);
}

static tsvd_status
push_context(struct cuda_sender *s)
{
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(&s->call, tsvdi_cuda_context_push(s->call.device->context));
    s->call.current = 1;
out:
    return ret;
}

static void *
run_sender(void *arg)
{
    struct cuda_sender *s = (struct cuda_sender *)arg;
    struct host_environment before;
    tsvd_status status;

    tsvdi_environment_enter(&before);
    status = push_context(s);
    (void)pthread_mutex_lock(&s->lock);
    note_status(s, status, &s->own);
    while (!s->ending || s->taken < s->given || s->busy) {
        advance(s);
    }
    (void)pthread_mutex_unlock(&s->lock);
    if (s->call.current) {
        tsvdi_cuda_context_pop();
    }
    return NULL;
}

/* ---- what the calling thread does with it ---- */

static tsvd_status
start_sender(struct cuda_call *call)
{
    struct cuda_sender *s = NULL;
    tsvd_status ret = TSVD_OK;

    if (call->sender != NULL) {
        goto out;
    }
    TSVD_TRY(tsvdi_cuda_make_pinned(call, call->device->pinned, PINNED_BYTES));
    if (call->device->sending == NULL) {
        CUDA_TRY(call, cudaStreamCreateWithFlags(&call->device->sending, cudaStreamNonBlocking));
    }
    TSVD_TRY(tsvdi_host_alloc(call->device->host, sizeof(*s), call->error, (void **)&s));
    memset(s, 0, sizeof(*s));
    s->call = *call;
    s->call.error = &s->own;
    tsvdi_error_clear(&s->own);
    s->call.current = 0;
    s->forks = tsvdi_host_forks();
    s->threads = tsvdi_host_threads_for(call->threads, (int64_t)(PINNED_BYTES / COPY_BYTES));
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->change, NULL);
    if (tsvdi_host_start_thread(&s->thread, run_sender, s) != 0) {
        tsvdi_host_free(call->device->host, s);
        TSVD_TRY(tsvdi_fail(call->error, TSVD_ERR_MEMORY,
                            "the system gives no thread for the way of results to the host"));
    }
    call->sender = s;
    (void)__atomic_add_fetch(&senders, 1, __ATOMIC_RELAXED);
out:
    return ret;
}

/* Waits until `items` items are taken; `settled`: and no copy is in flight. */
static void
await(struct cuda_sender *s, int64_t items, bool settled)
{
    (void)pthread_mutex_lock(&s->lock);
    while (s->taken < items || (settled && s->busy)) {
        (void)pthread_cond_wait(&s->change, &s->lock);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

/* The place of the next item. */
static struct item *
next_item(struct cuda_sender *s)
{
    await(s, s->given - ITEMS + 1, false);
    return &s->item[s->given % ITEMS];
}

/* Hands the next item over. */
static void
give(struct cuda_sender *s, enum item_kind kind, struct cuda_transfer transfer)
{
    struct item *item = next_item(s);

    (void)pthread_mutex_lock(&s->lock);
    item->kind = kind;
    item->transfer = transfer;
    s->given++;
    s->released = kind == RELEASE ? s->given : s->released;
    (void)pthread_cond_broadcast(&s->change);
    (void)pthread_mutex_unlock(&s->lock);
}

/* Records the event of an item: what is on the stream so far comes before it. */
static tsvd_status
mark(struct cuda_call *call, struct item *item)
{
    tsvd_status ret = TSVD_OK;

    if (item->ready == NULL) {
        CUDA_TRY(call, cudaEventCreateWithFlags(&item->ready, cudaEventDisableTiming));
    }
    CUDA_TRY(call, cudaEventRecord(item->ready, call->stream));
out:
    return ret;
}

/* Whether the copy engine can write there. */
static bool
is_pinned(const void *p)
{
    struct cudaPointerAttributes attributes;

    if (cudaPointerGetAttributes(&attributes, p) != cudaSuccess) {
        tsvdi_cuda_forget();
        return false;
    }
    return attributes.type == cudaMemoryTypeHost;
}

tsvd_status
tsvdi_cuda_download_async(struct cuda_call *call, struct cuda_transfer transfer)
{
    struct item *item;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(start_sender(call));
    item = next_item(call->sender);
    item->direct = transfer.rows == 1 && is_pinned(transfer.to);
    TSVD_TRY(mark(call, item));
    give(call->sender, SEND, transfer);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_prefault(struct cuda_call *call, void *to, size_t bytes)
{
    const struct cuda_transfer transfer = {(char *)to, NULL, bytes, 1, 0};
    tsvd_status ret = TSVD_OK;

    if (!is_pinned(to)) {
        TSVD_TRY(start_sender(call));
        give(call->sender, TOUCH, transfer);
    }
out:
    return ret;
}

/* Whether this is a child of the process that has the sender.  It has no such thread, and cannot
   use the device. */
static bool
is_child(const struct cuda_sender *s)
{
    return tsvdi_host_forks() != s->forks;
}

void
tsvdi_cuda_wait_releases(struct cuda_call *call)
{
    struct cuda_sender *s = call->sender;

    if (s != NULL) {
        await(s, s->before, false);
        s->before = s->released;
    }
}

tsvd_status
tsvdi_cuda_finish_downloads(struct cuda_call *call)
{
    struct cuda_sender *s = call->sender;

    if (s == NULL) {
        return TSVD_OK;
    }
    await(s, s->given, true);
    if (s->status != TSVD_OK) {
        *call->error = s->error;
    }
    return s->status;
}

void
tsvdi_cuda_drain(struct cuda_call *call)
{
    struct cuda_sender *s = call->sender;

    if (s != NULL && !is_child(s)) {
        await(s, s->given, true);
    }
}

void
tsvdi_cuda_free_after_downloads(struct cuda_call *call, void *d_p)
{
    const struct cuda_transfer transfer = {NULL, (const char *)d_p, 0, 0, 0};
    struct cuda_sender *s = call->sender;
    tsvd_error *const before = call->error;
    tsvd_error error;
    tsvd_status status;

    if (d_p == NULL || (s != NULL && is_child(s))) {
        return;
    }
    if (s == NULL || call->device->allocator.release != NULL) { /* it knows call->stream alone */
        tsvdi_cuda_drain(call);
        tsvdi_cuda_free(call, d_p);
        return;
    }
    tsvdi_error_clear(&error);
    call->error = &error;
    status = mark(call, next_item(s));
    call->error = before;
    if (status == TSVD_OK) {
        give(s, RELEASE, transfer);
        return;
    }
    await(s, s->given, true);
    (void)pthread_mutex_lock(&s->lock);
    note_status(s, status, &error); /* finish_downloads() returns it */
    (void)pthread_mutex_unlock(&s->lock);
    tsvdi_cuda_free(call, d_p);
}

void
tsvdi_cuda_end_sender(struct cuda_call *call)
{
    struct cuda_sender *s = call->sender;

    call->sender = NULL;
    if (s == NULL || is_child(s)) {
        return;
    }
    (void)pthread_mutex_lock(&s->lock);
    s->dropping = s->ending = true;
    (void)pthread_cond_broadcast(&s->change);
    (void)pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->thread, NULL);
    (void)__atomic_sub_fetch(&senders, 1, __ATOMIC_RELAXED);
    for (struct item &item : s->item) {
        if (item.ready != NULL) {
            (void)cudaEventDestroy(item.ready);
        }
    }
    (void)pthread_cond_destroy(&s->change);
    (void)pthread_mutex_destroy(&s->lock);
    tsvdi_host_free(call->device->host, s);
}
