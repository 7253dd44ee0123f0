/*
 * The table of methods.
 */
#ifndef TSVDI_METHODS_H
#define TSVDI_METHODS_H

#include "backend/method.h"

/* The row of a method; NULL for AUTO, and for a number that is no method. */
const struct method *tsvdi_method_of(tsvd_method number);

#endif
