/*
 * Structures of tsvd.h that grow: those that begin with their size.  A program was compiled with
 * the header of its own version, and its structures have the size that they had there.  So each
 * entry point takes what it is given, and gives what it fills, by these functions; all other code
 * has whole structures of this version.
 */
#ifndef TSVDI_API_GROWING_H
#define TSVDI_API_GROWING_H

#include "tsvd/tsvd.h"

/* Sets *own to what a program gives, with the default of each field that its header lacks; of a
   configuration and options of NULL all are defaults.  TSVD_ERR_ARGUMENT if it was not initialised,
   or has other than zeros in fields that this version lacks. */
tsvd_status tsvdi_take_config(const tsvd_config *given, tsvd_config *own, tsvd_error *error);
tsvd_status tsvdi_take_options(const tsvd_options *given, tsvd_options *own, tsvd_error *error);
tsvd_status tsvdi_take_blas(const tsvd_blas *given, tsvd_blas *own, tsvd_error *error);

/* begin() zeroes *own, which a call fills in place of what the program gives, and refuses that if
   it was not initialised.  end() copies it there.  NULL: the program wants none.  They begin and
   end a call: begin() clears the error. */
tsvd_status tsvdi_begin_plan(const tsvd_plan *given, tsvd_plan *own, tsvd_error *error);
tsvd_status tsvdi_begin_info(const tsvd_info *given, tsvd_info *own, tsvd_error *error);
tsvd_status tsvdi_begin_inverse_info(const tsvd_inverse_info *given, tsvd_inverse_info *own,
                                     tsvd_error *error);
void tsvdi_end_plan(tsvd_plan *given, tsvd_plan *own);
void tsvdi_end_info(tsvd_info *given, tsvd_info *own);
void tsvdi_end_inverse_info(tsvd_inverse_info *given, tsvd_inverse_info *own);

#endif
