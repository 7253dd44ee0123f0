/*
 * The floating-point environment; see environment.h.  The functions are not inline: a compiler may
 * move arithmetic past an inline change of the environment, which it does not see.
 */
#include "host/environment.h"

#ifdef __x86_64__

#include <xmmintrin.h>

/* Rounds to nearest, flushes nothing, masks all exceptions; none has occurred. */
enum { DEFAULT_CONTROL = 0x1f80 };

void
tsvdi_environment_enter(struct host_environment *before)
{
    before->control = _mm_getcsr();
    _mm_setcsr(DEFAULT_CONTROL);
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
tsvdi_environment_leave(const struct host_environment *before)
{
    (void)fesetenv(&before->all);
}

#endif
