/*
 * The table of all methods: here, and not in bidiag/, since those of dense matrices are among them.
 */
#include "dense/methods.h"

static const struct method *const methods[] = {&tsvdi_method_dc,      &tsvdi_method_qr,
                                               &tsvdi_method_givens,  &tsvdi_method_bisect,
                                               &tsvdi_method_twisted, &tsvdi_method_jacobi};

const struct method *
tsvdi_method_of(tsvd_method number)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (methods[i]->number == number) {
            return methods[i];
        }
    }
    return NULL;
}
