/*
 * The floating-point environment; see environment.h.  The functions are not inline: a compiler does
 * not see an inline change of the environment, and may move arithmetic past it.
 */
#include "host/environment.h"

#ifdef __x86_64__

#include <xmmintrin.h>

enum {
    /* Rounds to nearest, flushes nothing, masks all exceptions; none has occurred. */
    DEFAULT_CONTROL = 0x1f80,
    FLUSH_RESULTS = 0x8000,
    FLUSH_OPERANDS = 0x40
};

void
tsvdi_environment_enter(struct host_environment *before)
{
    before->control = _mm_getcsr();
    _mm_setcsr(DEFAULT_CONTROL);
}

void
tsvdi_environment_enter_flushing(struct host_environment *before)
{
    before->control = _mm_getcsr();
    _mm_setcsr(DEFAULT_CONTROL | FLUSH_RESULTS | FLUSH_OPERANDS);
}

void
tsvdi_environment_leave(const struct host_environment *before)
{
    _mm_setcsr(before->control);
}

#else

void
tsvdi_environment_enter(struct host_environment *before)
{
    (void)fegetenv(&before->all);
    (void)fesetenv(FE_DFL_ENV);
}

void
tsvdi_environment_enter_flushing(struct host_environment *before)
{
    tsvdi_environment_enter(before);
}

void
tsvdi_environment_leave(const struct host_environment *before)
{
    (void)fesetenv(&before->all);
}

#endif
