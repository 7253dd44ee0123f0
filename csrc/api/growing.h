/*
 * Structures of tsvd.h that grow: those that begin with their size.  A program was compiled with
 * the header of its own version, and its structures have the size that they had there.  So each
 * entry point takes what it is given, and gives what it fills, by these functions; all other code
 * has whole structures of this version.
 */
#ifndef TSVDI_API_GROWING_H
#define TSVDI_API_GROWING_H

#include "tsvd/tsvd.h"

/* Sets *taken to what a program gives, or to *own: the same with the default of each field that its
   header lacks; of a configuration and options of NULL all are defaults.  TSVD_ERR_ARGUMENT if it
   was not initialised, or has other than zeros in fields that this version lacks. */
tsvd_status tsvdi_take_config(const tsvd_config *given, tsvd_config *own, const tsvd_config **taken,
                              tsvd_error *error);
tsvd_status tsvdi_take_options(const tsvd_options *given, tsvd_options *own,
                               const tsvd_options **taken, tsvd_error *error);
tsvd_status tsvdi_take_blas(const tsvd_blas *given, tsvd_blas *own, const tsvd_blas **taken,
                            tsvd_error *error);

/* begin() clears the error, and refuses what a program gives to be filled if it was not
   initialised, before anything is written there.  Else it zeroes all of it but the size, and of an
   info sets *filled to what a call fills: to what is given, or to *own.  end() brings there what
   was filled.  NULL: the program wants none. */
tsvd_status tsvdi_begin_plan(tsvd_plan *given, tsvd_error *error);
tsvd_status tsvdi_begin_info(tsvd_info *given, tsvd_info *own, tsvd_info **filled,
                             tsvd_error *error);
tsvd_status tsvdi_begin_inverse_info(tsvd_inverse_info *given, tsvd_inverse_info *own,
                                     tsvd_inverse_info **filled, tsvd_error *error);
void tsvdi_end_plan(tsvd_plan *given, const tsvd_plan *made);
void tsvdi_end_info(tsvd_info *given, const tsvd_info *filled);
void tsvdi_end_inverse_info(tsvd_inverse_info *given, const tsvd_inverse_info *filled);

#endif
