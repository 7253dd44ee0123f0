/*
 * Messages between blocks: a number together with the step that it belongs to.  The reader of a
 * number polls it until the step is right, so that it takes one write and one read from block to
 * block, and no barrier.  This is what NCCL's protocol LL does.
 *
 * A word of 64 bits has 32 bits of a number and the step.  A read or a write of a word is atomic,
 * and a message holds all that its reader needs, so that the order of other accesses is of no
 * concern.  Messages lie in global memory, or in the shared memory of the blocks of a cluster.
 */
#ifndef TSVDI_CUDA_MATRIX_MAIL_H
#define TSVDI_CUDA_MATRIX_MAIL_H

#include "kernels.h"

enum { MESSAGE_WORDS = sizeof(scalar) / 4, PART_WORDS = sizeof(real) / 4 };

struct alignas(8 * PART_WORDS) message {
    unsigned long long word[MESSAGE_WORDS];
};

/* Of a real number, or of one part of a complex one. */
static __device__ __forceinline__ void
send_part(unsigned long long *to, real x, unsigned step)
{
    const unsigned long long tag = (unsigned long long)step << 32;

#if TSVD_SINGLE
    const unsigned long long word = tag | __float_as_uint(x);

    asm volatile("st.relaxed.gpu.b64 [%0], %1;" ::"l"(to), "l"(word));
#else
    const unsigned long long bits = (unsigned long long)__double_as_longlong(x);
    const unsigned long long low = tag | (unsigned)bits, high = tag | bits >> 32;

    asm volatile("st.relaxed.gpu.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(low), "l"(high));
#endif
}

static __device__ __forceinline__ void
send(struct message *to, scalar x, unsigned step)
{
    send_part(to->word, n_real(x), step);
#if TSVD_COMPLEX
    send_part(to->word + PART_WORDS, n_imag(x), step);
#endif
}

static __device__ __forceinline__ struct message
look(const struct message *from)
{
    struct message m;

    for (int i = 0; i < MESSAGE_WORDS; i += PART_WORDS) {
#if TSVD_SINGLE
        asm volatile("ld.relaxed.gpu.b64 %0, [%1];" : "=l"(m.word[i]) : "l"(from->word + i));
#else
        asm volatile("ld.relaxed.gpu.v2.b64 {%0, %1}, [%2];"
                     : "=l"(m.word[i]), "=l"(m.word[i + 1])
                     : "l"(from->word + i));
#endif
    }
    return m;
}

static __device__ __forceinline__ bool
is_of(struct message m, unsigned step)
{
    bool all = true;

    for (int i = 0; i < MESSAGE_WORDS; i++) {
        all = all && (unsigned)(m.word[i] >> 32) == step;
    }
    return all;
}

static __device__ __forceinline__ real
part_in(const unsigned long long *word)
{
#if TSVD_SINGLE
    return __uint_as_float((unsigned)word[0]);
#else
    return __longlong_as_double((long long)(word[1] << 32 | (unsigned)word[0]));
#endif
}

static __device__ __forceinline__ scalar
number_in(struct message m)
{
#if TSVD_COMPLEX
    return {part_in(m.word), part_in(m.word + PART_WORDS)};
#else
    return part_in(m.word);
#endif
}

/* x[k] = the number that arrives at from(k) in this step, or 0 if that is NULL.  All loads are in
   flight at once. */
template <int N, typename From>
static __device__ __forceinline__ void
receive(scalar (&x)[N], unsigned step, From from)
{
    struct message m[N];
    bool waiting;

    do {
        waiting = false;
#pragma unroll
        for (int k = 0; k < N; k++) {
            m[k] = {}; /* else its registers would stay live from the last call on */
            if (from(k) != NULL) {
                m[k] = look(from(k));
            }
        }
#pragma unroll
        for (int k = 0; k < N; k++) {
            waiting = waiting || (from(k) != NULL && !is_of(m[k], step));
        }
    } while (waiting);
#pragma unroll
    for (int k = 0; k < N; k++) {
        x[k] = from(k) != NULL ? number_in(m[k]) : REAL(0);
    }
}

/* Where `own`, in shared memory, is in another block of the cluster. */
static __device__ __forceinline__ struct message *
at_peer(struct message *own, int block)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    struct message *at;

    asm("mapa.u64 %0, %1, %2;" : "=l"(at) : "l"(own), "r"(block));
    return at;
#else
    (void)block;
    return own;
#endif
}

#endif
