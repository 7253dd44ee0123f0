/*
 * Functions that exist once for each precision.
 *
 * Every numerical source is compiled twice (math/real.h), and those of dense matrices twice more,
 * for complex ones (math/scalar.h).  Inside such a source tsvdi_NAME is the function of its own
 * type: of its scalar where the list below says TSVD_S, and of its real type where it says TSVD_T.
 * Its definition and its calls are spelled alike, so that a search for the name finds all of them.
 * nm and a debugger show the suffix _f64, _f32, _c128 or _c64.  The
 * functions of math/sturm.c are listed in math/sturm.h in the same way.  tests/test_structure.py
 * compares the lists with what the objects define.
 *
 * Code that belongs to no precision, in api/, goes through struct precision.
 */
#ifndef TSVDI_PRECISION_H
#define TSVDI_PRECISION_H

#include "backend/plan.h"

struct dense_call; /* dense/dense_call.h */

/* What the numerical core offers to the entry points; dense/precision.c fills it in. */
struct precision {
    /* tsvdi_plan_call() in bidiag/plan.c: what will be done, and with how many bytes.  It fails if
       the options ask for what is not offered.  For a CUDA device the chunk and device_bytes depend
       on its free memory. */
    tsvd_status (*plan)(const struct svd_problem *problem, struct svd_plan *plan,
                        tsvd_error *error);

    /* tsvdi_svd() in bidiag/svd.c: what tsvd_svd() does by a plan. */
    tsvd_status (*svd)(const struct svd_plan *plan, tsvd_info *info, tsvd_error *error);

    /* tsvdi_select() in bidiag/select.c: what tsvd_select() does with checked arguments. */
    tsvd_status (*select)(const struct svd_problem *problem, double low, double high,
                          int64_t *first, int64_t *count, tsvd_error *error);

    /* dense/: the same for dense matrices. */
    tsvd_status (*dense_plan)(const struct dense_problem *problem, struct dense_plan *plan,
                              tsvd_error *error);
    tsvd_status (*dense_svd)(const struct dense_plan *plan, tsvd_info *info, tsvd_error *error);

    /* dense/reduction.c: what tsvd_dense_reduce() and the functions of tsvd_reduction do with
       checked arguments.  end() is due also after a failure of begin() or restore(), where *call
       may be NULL. */
    tsvd_status (*reduce_begin)(const struct dense_problem *problem, struct dense_call **call,
                                tsvd_error *error);
    tsvd_status (*reduce_restore)(const struct dense_problem *problem, const void *state,
                                  uint64_t bytes, struct dense_call **call, tsvd_error *error);
    void (*reduce_end)(struct dense_call *call);
    tsvd_status (*reduce_entries)(struct dense_call *call, tsvd_space space, void *d, void *e,
                                  tsvd_error *error);
    tsvd_status (*reduce_select)(struct dense_call *call, double low, double high, int64_t *first,
                                 int64_t *count, tsvd_error *error);
    tsvd_status (*reduce_apply)(struct dense_call *call, const struct dense_problem *problem,
                                const struct dense_vectors *vectors, tsvd_error *error);
    tsvd_status (*reduce_svd)(struct dense_call *call, const struct dense_problem *problem,
                              tsvd_info *info, tsvd_error *error);
    uint64_t (*reduce_state_bytes)(const struct dense_call *call);
    tsvd_status (*reduce_save)(struct dense_call *call, void *state, tsvd_error *error);

    /* dense/inverse.c: the same for inverses. */
    tsvd_status (*inverse_plan)(const struct inverse_problem *problem, tsvd_plan *plan,
                                tsvd_error *error);
    tsvd_status (*inverse)(const struct inverse_problem *problem, const tsvd_plan *plan,
                           tsvd_inverse_info *info, tsvd_error *error);

    /* dense/by_column.c: gives results that lie by columns, and are those of the transposes,
       the signs that tsvd.h fixes. */
    tsvd_status (*orient_by_column)(const struct column_results *results);

    /* dense/methods.c: the row of a method; NULL for AUTO, and for a number that is no method. */
    const struct method *(*method_of)(tsvd_method number);
};

/* All are tsvdi_precision in dense/precision.c, which is compiled for each type.  For bidiagonal
   matrices, which are real, complex types have the functions of their real type. */
extern const struct precision tsvdi_precision_f64, tsvdi_precision_f32, tsvdi_precision_c128,
    tsvdi_precision_c64;

/* The table of a dtype. */
static inline const struct precision *
tsvdi_precision_of(tsvd_dtype dtype)
{
    switch (dtype) {
    case TSVD_FLOAT32:
        return &tsvdi_precision_f32;
    case TSVD_COMPLEX128:
        return &tsvdi_precision_c128;
    case TSVD_COMPLEX64:
        return &tsvdi_precision_c64;
    case TSVD_FLOAT64:
        break;
    }
    return &tsvdi_precision_f64;
}

#ifdef TSVD_SINGLE

#include "math/scalar.h"

#define tsvdi_precision TSVD_S(tsvdi_precision)

/* bidiag/ */
#define tsvdi_add_info TSVD_T(tsvdi_add_info)
#define tsvdi_check TSVD_T(tsvdi_check)
#define tsvdi_sum_over_parts TSVD_T(tsvdi_sum_over_parts)
#define tsvdi_chunk_alloc TSVD_T(tsvdi_chunk_alloc)
#define tsvdi_find_values TSVD_T(tsvdi_find_values)
#define tsvdi_method_of TSVD_S(tsvdi_method_of)
#define tsvdi_method_bisect TSVD_T(tsvdi_method_bisect)
#define tsvdi_method_dc TSVD_T(tsvdi_method_dc)
#define tsvdi_method_givens TSVD_T(tsvdi_method_givens)
#define tsvdi_method_jacobi TSVD_S(tsvdi_method_jacobi)
#define tsvdi_method_qr TSVD_T(tsvdi_method_qr)
#define tsvdi_method_small TSVD_S(tsvdi_method_small)
#define tsvdi_method_twisted TSVD_T(tsvdi_method_twisted)
#define tsvdi_plan_call TSVD_T(tsvdi_plan_call)
#define tsvdi_qr_sweeps TSVD_T(tsvdi_qr_sweeps)
#define tsvdi_qr_sweeps_bytes TSVD_T(tsvdi_qr_sweeps_bytes)
#define tsvdi_rotations TSVD_T(tsvdi_rotations)
#define tsvdi_rotations_bytes TSVD_T(tsvdi_rotations_bytes)
#define tsvdi_select TSVD_T(tsvdi_select)
#define tsvdi_svd TSVD_T(tsvdi_svd)

/* dense/ */
#define tsvdi_dense_finish_downloads TSVD_S(tsvdi_dense_finish_downloads)
#define tsvdi_dense_allowed TSVD_S(tsvdi_dense_allowed)
#define tsvdi_dense_begin TSVD_S(tsvdi_dense_begin)
#define tsvdi_dense_bidiagonal TSVD_S(tsvdi_dense_bidiagonal)
#define tsvdi_dense_check_inner TSVD_S(tsvdi_dense_check_inner)
#define tsvdi_dense_context TSVD_S(tsvdi_dense_context)
#define tsvdi_dense_end TSVD_S(tsvdi_dense_end)
#define tsvdi_dense_nonfinite TSVD_S(tsvdi_dense_nonfinite)
#define tsvdi_dense_orient_by_column TSVD_S(tsvdi_dense_orient_by_column)
#define tsvdi_dense_plan_call TSVD_S(tsvdi_dense_plan_call)
#define tsvdi_dense_reduce TSVD_S(tsvdi_dense_reduce)
#define tsvdi_dense_result_bytes TSVD_S(tsvdi_dense_result_bytes)
#define tsvdi_dense_solve TSVD_S(tsvdi_dense_solve)
#define tsvdi_dense_svd TSVD_S(tsvdi_dense_svd)
#define tsvdi_inverse TSVD_S(tsvdi_inverse)
#define tsvdi_inverse_plan_call TSVD_S(tsvdi_inverse_plan_call)
#define tsvdi_reduction_apply TSVD_S(tsvdi_reduction_apply)
#define tsvdi_reduction_begin TSVD_S(tsvdi_reduction_begin)
#define tsvdi_reduction_end TSVD_S(tsvdi_reduction_end)
#define tsvdi_reduction_entries TSVD_S(tsvdi_reduction_entries)
#define tsvdi_reduction_restore TSVD_S(tsvdi_reduction_restore)
#define tsvdi_reduction_save TSVD_S(tsvdi_reduction_save)
#define tsvdi_reduction_select TSVD_S(tsvdi_reduction_select)
#define tsvdi_reduction_state_bytes TSVD_S(tsvdi_reduction_state_bytes)
#define tsvdi_reduction_svd TSVD_S(tsvdi_reduction_svd)
#define tsvdi_small_serves TSVD_S(tsvdi_small_serves)

/* backend/ */
#define tsvdi_backend_of TSVD_S(tsvdi_backend_of)
#define tsvdi_host_drop_extra TSVD_T(tsvdi_host_drop_extra)
#define tsvdi_host_fill_nan TSVD_T(tsvdi_host_fill_nan)
#define tsvdi_host_fill TSVD_T(tsvdi_host_fill)
#define tsvdi_host_gather TSVD_T(tsvdi_host_gather)
#define tsvdi_host_values TSVD_T(tsvdi_host_values)
#define tsvdi_host_load TSVD_T(tsvdi_host_load)
#define tsvdi_log_alloc TSVD_T(tsvdi_log_alloc)
#define tsvdi_log_free TSVD_T(tsvdi_log_free)

/* cpu/ */
#define tsvdi_cpu TSVD_S(tsvdi_cpu)
#define tsvdi_cpu_dc_count_blocks TSVD_T(tsvdi_cpu_dc_count_blocks)
#define tsvdi_cpu_dc TSVD_T(tsvdi_cpu_dc)
#define tsvdi_cpu_dense TSVD_S(tsvdi_cpu_dense)
#define tsvdi_cpu_dense_apply TSVD_S(tsvdi_cpu_dense_apply)
#define tsvdi_cpu_dense_band_stage TSVD_S(tsvdi_cpu_dense_band_stage)
#define tsvdi_cpu_dense_bidiagonalize_stage TSVD_S(tsvdi_cpu_dense_bidiagonalize_stage)
#define tsvdi_cpu_dense_can_make_side TSVD_S(tsvdi_cpu_dense_can_make_side)
#define tsvdi_cpu_dense_chase_stage TSVD_S(tsvdi_cpu_dense_chase_stage)
#define tsvdi_cpu_dense_factor TSVD_S(tsvdi_cpu_dense_factor)
#define tsvdi_cpu_dense_fix_signs TSVD_S(tsvdi_cpu_dense_fix_signs)
#define tsvdi_cpu_dense_for_each TSVD_S(tsvdi_cpu_dense_for_each)
#define tsvdi_cpu_dense_large_values TSVD_S(tsvdi_cpu_dense_large_values)
#define tsvdi_cpu_dense_load TSVD_S(tsvdi_cpu_dense_load)
#define tsvdi_cpu_dense_load_columns TSVD_S(tsvdi_cpu_dense_load_columns)
#define tsvdi_cpu_dense_long_product TSVD_S(tsvdi_cpu_dense_long_product)
#define tsvdi_cpu_dense_make_side TSVD_S(tsvdi_cpu_dense_make_side)
#define tsvdi_cpu_dense_multiply TSVD_S(tsvdi_cpu_dense_multiply)
#define tsvdi_cpu_dense_multiply_stage TSVD_S(tsvdi_cpu_dense_multiply_stage)
#define tsvdi_cpu_dense_multiply_workspace TSVD_S(tsvdi_cpu_dense_multiply_workspace)
#define tsvdi_cpu_dense_numbers TSVD_S(tsvdi_cpu_dense_numbers)
#define tsvdi_cpu_dense_product TSVD_S(tsvdi_cpu_dense_product)
#define tsvdi_cpu_dense_qr TSVD_S(tsvdi_cpu_dense_qr)
#define tsvdi_cpu_dense_qr_stage TSVD_S(tsvdi_cpu_dense_qr_stage)
#define tsvdi_cpu_dense_reflector TSVD_S(tsvdi_cpu_dense_reflector)
#define tsvdi_cpu_dense_sizes TSVD_S(tsvdi_cpu_dense_sizes)
#define tsvdi_cpu_dense_square TSVD_S(tsvdi_cpu_dense_square)
#define tsvdi_cpu_dense_workers TSVD_S(tsvdi_cpu_dense_workers)
#define tsvdi_cpu_dc_deflate TSVD_T(tsvdi_cpu_dc_deflate)
#define tsvdi_cpu_dc_fill_factors TSVD_T(tsvdi_cpu_dc_fill_factors)
#define tsvdi_cpu_dc_find_weights TSVD_T(tsvdi_cpu_dc_find_weights)
#define tsvdi_cpu_extra TSVD_T(tsvdi_cpu_extra)
#define tsvdi_cpu_givens TSVD_T(tsvdi_cpu_givens)
#define tsvdi_cpu_inverse TSVD_S(tsvdi_cpu_inverse)
#define tsvdi_cpu_inverse_balance TSVD_S(tsvdi_cpu_inverse_balance)
#define tsvdi_cpu_inverse_has_lanes TSVD_S(tsvdi_cpu_inverse_has_lanes)
#define tsvdi_cpu_inverse_lanes TSVD_S(tsvdi_cpu_inverse_lanes)
#define tsvdi_cpu_inverse_lanes_bytes TSVD_S(tsvdi_cpu_inverse_lanes_bytes)
#define tsvdi_cpu_inverse_left_lower TSVD_S(tsvdi_cpu_inverse_left_lower)
#define tsvdi_cpu_inverse_lu TSVD_S(tsvdi_cpu_inverse_lu)
#define tsvdi_cpu_inverse_norm TSVD_S(tsvdi_cpu_inverse_norm)
#define tsvdi_cpu_inverse_qr TSVD_S(tsvdi_cpu_inverse_qr)
#define tsvdi_cpu_inverse_qr_bytes TSVD_S(tsvdi_cpu_inverse_qr_bytes)
#define tsvdi_cpu_inverse_refine TSVD_S(tsvdi_cpu_inverse_refine)
#define tsvdi_cpu_inverse_refine_bytes TSVD_S(tsvdi_cpu_inverse_refine_bytes)
#define tsvdi_cpu_inverse_right_lower TSVD_S(tsvdi_cpu_inverse_right_lower)
#define tsvdi_cpu_inverse_right_upper TSVD_S(tsvdi_cpu_inverse_right_upper)
#define tsvdi_cpu_inverse_small_upper TSVD_S(tsvdi_cpu_inverse_small_upper)
#define tsvdi_cpu_inverse_subtract TSVD_S(tsvdi_cpu_inverse_subtract)
#define tsvdi_cpu_inverse_unbalance TSVD_S(tsvdi_cpu_inverse_unbalance)
#define tsvdi_cpu_inverse_upper TSVD_S(tsvdi_cpu_inverse_upper)
#define tsvdi_cpu_inverse_extended TSVD_S(tsvdi_cpu_inverse_extended)
#define tsvdi_cpu_inverse_extended_bytes TSVD_S(tsvdi_cpu_inverse_extended_bytes)
#define tsvdi_cpu_jacobi TSVD_S(tsvdi_cpu_jacobi)
#define tsvdi_cpu_jacobi_norm TSVD_S(tsvdi_cpu_jacobi_norm)
#define tsvdi_cpu_jacobi_pivot TSVD_S(tsvdi_cpu_jacobi_pivot)
#define tsvdi_cpu_jacobi_sort TSVD_S(tsvdi_cpu_jacobi_sort)
#define tsvdi_cpu_jacobi_sweeps TSVD_S(tsvdi_cpu_jacobi_sweeps)
#define tsvdi_cpu_dense_lanes TSVD_S(tsvdi_cpu_dense_lanes)
#define tsvdi_cpu_dc_leaf_bytes TSVD_T(tsvdi_cpu_dc_leaf_bytes)
#define tsvdi_cpu_dc_leaf_group_size TSVD_T(tsvdi_cpu_dc_leaf_group_size)
#define tsvdi_cpu_dc_leaf_values TSVD_T(tsvdi_cpu_dc_leaf_values)
#define tsvdi_cpu_dc_leaves_begin TSVD_T(tsvdi_cpu_dc_leaves_begin)
#define tsvdi_cpu_dc_multiply_block TSVD_T(tsvdi_cpu_dc_multiply_block)
#define tsvdi_cpu_dc_settle TSVD_T(tsvdi_cpu_dc_settle)
#define tsvdi_cpu_dc_solve_leaves TSVD_T(tsvdi_cpu_dc_solve_leaves)
#define tsvdi_cpu_dc_solve_roots TSVD_T(tsvdi_cpu_dc_solve_roots)
#define tsvdi_cpu_dc_store TSVD_T(tsvdi_cpu_dc_store)
#define tsvdi_cpu_twisted TSVD_T(tsvdi_cpu_twisted)
#define tsvdi_cpu_twisted_check TSVD_T(tsvdi_cpu_twisted_check)
#define tsvdi_cpu_twisted_for_each TSVD_T(tsvdi_cpu_twisted_for_each)
#define tsvdi_cpu_twisted_pays TSVD_T(tsvdi_cpu_twisted_pays)
#define tsvdi_cpu_twisted_probe TSVD_T(tsvdi_cpu_twisted_probe)
#define tsvdi_cpu_twisted_search TSVD_T(tsvdi_cpu_twisted_search)
#define tsvdi_cpu_twisted_search_workspace TSVD_T(tsvdi_cpu_twisted_search_workspace)
#define tsvdi_cpu_twisted_stands_apart TSVD_T(tsvdi_cpu_twisted_stands_apart)
#define tsvdi_cpu_twisted_values TSVD_T(tsvdi_cpu_twisted_values)
#define tsvdi_cpu_values TSVD_T(tsvdi_cpu_values)
#define tsvdi_cpu_vectors TSVD_T(tsvdi_cpu_vectors)
#define tsvdi_kernels TSVD_S(tsvdi_kernels)
#define tsvdi_kernels_avx2 TSVD_S(tsvdi_kernels_avx2)
#define tsvdi_kernels_avx512 TSVD_S(tsvdi_kernels_avx512)
#define tsvdi_kernels_generic TSVD_S(tsvdi_kernels_generic)

/* cuda/ */
#define tsvdi_cuda TSVD_S(tsvdi_cuda)
#define tsvdi_cuda_dc TSVD_T(tsvdi_cuda_dc)
#define tsvdi_cuda_dense TSVD_S(tsvdi_cuda_dense)
#define tsvdi_cuda_dense_chase TSVD_S(tsvdi_cuda_dense_chase)
#define tsvdi_cuda_dense_chase_bytes TSVD_S(tsvdi_cuda_dense_chase_bytes)
#define tsvdi_cuda_dense_diamonds_apply TSVD_S(tsvdi_cuda_dense_diamonds_apply)
#define tsvdi_cuda_dense_diamonds_bytes TSVD_S(tsvdi_cuda_dense_diamonds_bytes)
#define tsvdi_cuda_dense_band_fits TSVD_S(tsvdi_cuda_dense_band_fits)
#define tsvdi_cuda_dense_band_stage TSVD_S(tsvdi_cuda_dense_band_stage)
#define tsvdi_cuda_dense_chase_stage TSVD_S(tsvdi_cuda_dense_chase_stage)
#define tsvdi_cuda_dense_make_side TSVD_S(tsvdi_cuda_dense_make_side)
#define tsvdi_cuda_dense_side_bytes TSVD_S(tsvdi_cuda_dense_side_bytes)
#define tsvdi_cuda_dense_stage_numbers TSVD_S(tsvdi_cuda_dense_stage_numbers)
#define tsvdi_cuda_dense_cholesky_stage TSVD_S(tsvdi_cuda_dense_cholesky_stage)
#define tsvdi_cuda_dense_needs_staging TSVD_S(tsvdi_cuda_dense_needs_staging)
#define tsvdi_cuda_dense_qr_stage TSVD_S(tsvdi_cuda_dense_qr_stage)
#define tsvdi_cuda_dense_bidiagonalize_stage TSVD_S(tsvdi_cuda_dense_bidiagonalize_stage)
#define tsvdi_cuda_dense_small_stage TSVD_S(tsvdi_cuda_dense_small_stage)
#define tsvdi_cuda_dense_stage_apply TSVD_S(tsvdi_cuda_dense_stage_apply)
#define tsvdi_cuda_dense_stage_bytes TSVD_S(tsvdi_cuda_dense_stage_bytes)
#define tsvdi_cuda_dense_finish TSVD_S(tsvdi_cuda_dense_finish)
#define tsvdi_cuda_dense_orient_by_column TSVD_S(tsvdi_cuda_dense_orient_by_column)
#define tsvdi_cuda_dense_finish_bytes TSVD_S(tsvdi_cuda_dense_finish_bytes)
#define tsvdi_cuda_dense_load TSVD_S(tsvdi_cuda_dense_load)
#define tsvdi_cuda_dense_load_share TSVD_S(tsvdi_cuda_dense_load_share)
#define tsvdi_cuda_dense_scale_share TSVD_S(tsvdi_cuda_dense_scale_share)
#define tsvdi_cuda_dense_place TSVD_S(tsvdi_cuda_dense_place)
#define tsvdi_cuda_dense_qr TSVD_S(tsvdi_cuda_dense_qr)
#define tsvdi_cuda_dense_qr_bytes TSVD_S(tsvdi_cuda_dense_qr_bytes)
#define tsvdi_cuda_dense_reflect TSVD_S(tsvdi_cuda_dense_reflect)
#define tsvdi_cuda_dense_reflect_bytes TSVD_S(tsvdi_cuda_dense_reflect_bytes)
#define tsvdi_cuda_dense_resident TSVD_S(tsvdi_cuda_dense_resident)
#define tsvdi_cuda_dense_resident_bytes TSVD_S(tsvdi_cuda_dense_resident_bytes)
#define tsvdi_cuda_dense_resident_fits TSVD_S(tsvdi_cuda_dense_resident_fits)
#define tsvdi_cuda_dense_small_fits TSVD_S(tsvdi_cuda_dense_small_fits)
#define tsvdi_cuda_dense_upload TSVD_S(tsvdi_cuda_dense_upload)
#define tsvdi_cuda_extra TSVD_T(tsvdi_cuda_extra)
#define tsvdi_cuda_load_fill TSVD_T(tsvdi_cuda_load_fill)
#define tsvdi_cuda_load_fill_nan TSVD_T(tsvdi_cuda_load_fill_nan)
#define tsvdi_cuda_load_chunk TSVD_T(tsvdi_cuda_load_chunk)
#define tsvdi_cuda_givens TSVD_T(tsvdi_cuda_givens)
#define tsvdi_cuda_inverse TSVD_S(tsvdi_cuda_inverse)
#define tsvdi_cuda_inverse_arrange TSVD_S(tsvdi_cuda_inverse_arrange)
#define tsvdi_cuda_inverse_balance TSVD_S(tsvdi_cuda_inverse_balance)
#define tsvdi_cuda_inverse_complete TSVD_S(tsvdi_cuda_inverse_complete)
#define tsvdi_cuda_inverse_complete_extended TSVD_S(tsvdi_cuda_inverse_complete_extended)
#define tsvdi_cuda_inverse_finish TSVD_S(tsvdi_cuda_inverse_finish)
#define tsvdi_cuda_inverse_large TSVD_S(tsvdi_cuda_inverse_large)
#define tsvdi_cuda_inverse_large_bytes TSVD_S(tsvdi_cuda_inverse_large_bytes)
#define tsvdi_cuda_inverse_mark TSVD_S(tsvdi_cuda_inverse_mark)
#define tsvdi_cuda_inverse_note TSVD_S(tsvdi_cuda_inverse_note)
#define tsvdi_cuda_inverse_refine TSVD_S(tsvdi_cuda_inverse_refine)
#define tsvdi_cuda_inverse_refine_bytes TSVD_S(tsvdi_cuda_inverse_refine_bytes)
#define tsvdi_cuda_inverse_rescue TSVD_S(tsvdi_cuda_inverse_rescue)
#define tsvdi_cuda_inverse_scale_bytes TSVD_S(tsvdi_cuda_inverse_scale_bytes)
#define tsvdi_cuda_inverse_small TSVD_S(tsvdi_cuda_inverse_small)
#define tsvdi_cuda_inverse_small_fits TSVD_S(tsvdi_cuda_inverse_small_fits)
#define tsvdi_cuda_jacobi TSVD_S(tsvdi_cuda_jacobi)
#define tsvdi_cuda_jacobi_lay_out TSVD_S(tsvdi_cuda_jacobi_lay_out)
#define tsvdi_cuda_jacobi_measure TSVD_S(tsvdi_cuda_jacobi_measure)
#define tsvdi_cuda_jacobi_prepare TSVD_S(tsvdi_cuda_jacobi_prepare)
#define tsvdi_cuda_jacobi_rank TSVD_S(tsvdi_cuda_jacobi_rank)
#define tsvdi_cuda_jacobi_solve TSVD_S(tsvdi_cuda_jacobi_solve)
#define tsvdi_cuda_jacobi_sweep TSVD_S(tsvdi_cuda_jacobi_sweep)
#define tsvdi_cuda_jacobi_sweep_bytes TSVD_S(tsvdi_cuda_jacobi_sweep_bytes)
#define tsvdi_cuda_jacobi_tiny TSVD_S(tsvdi_cuda_jacobi_tiny)
#define tsvdi_cuda_jacobi_work_bytes TSVD_S(tsvdi_cuda_jacobi_work_bytes)
#define tsvdi_cuda_dc_leaf_bytes TSVD_T(tsvdi_cuda_dc_leaf_bytes)
#define tsvdi_cuda_rotations_order TSVD_T(tsvdi_cuda_rotations_order)
#define tsvdi_cuda_rotations_rotate TSVD_T(tsvdi_cuda_rotations_rotate)
#define tsvdi_cuda_load_needs_staging TSVD_T(tsvdi_cuda_load_needs_staging)
#define tsvdi_cuda_values_sturm_add TSVD_T(tsvdi_cuda_values_sturm_add)
#define tsvdi_cuda_values_sturm_begin TSVD_T(tsvdi_cuda_values_sturm_begin)
#define tsvdi_cuda_values_sturm_bytes TSVD_T(tsvdi_cuda_values_sturm_bytes)
#define tsvdi_cuda_values_sturm_end TSVD_T(tsvdi_cuda_values_sturm_end)
#define tsvdi_cuda_twisted_probe TSVD_T(tsvdi_cuda_twisted_probe)
#define tsvdi_cuda_twisted_make TSVD_T(tsvdi_cuda_twisted_make)
#define tsvdi_cuda_twisted TSVD_T(tsvdi_cuda_twisted)
#define tsvdi_cuda_twisted_share TSVD_T(tsvdi_cuda_twisted_share)
#define tsvdi_cuda_twisted_values TSVD_T(tsvdi_cuda_twisted_values)
#define tsvdi_cuda_values TSVD_T(tsvdi_cuda_values)
#define tsvdi_cuda_values_batch TSVD_T(tsvdi_cuda_values_batch)
#define tsvdi_cuda_values_fit TSVD_T(tsvdi_cuda_values_fit)
#define tsvdi_cuda_values_hinted TSVD_T(tsvdi_cuda_values_hinted)
#define tsvdi_cuda_values_hints TSVD_T(tsvdi_cuda_values_hints)
#define tsvdi_cuda_values_on_device TSVD_T(tsvdi_cuda_values_on_device)
#define tsvdi_cuda_values_search TSVD_T(tsvdi_cuda_values_search)
#define tsvdi_cuda_values_search_bytes TSVD_T(tsvdi_cuda_values_search_bytes)
#define tsvdi_cuda_vectors TSVD_T(tsvdi_cuda_vectors)
#define tsvdi_cuda_dc_deflate TSVD_T(tsvdi_cuda_dc_deflate)
#define tsvdi_cuda_dc_factors TSVD_T(tsvdi_cuda_dc_factors)
#define tsvdi_cuda_dc_leaves TSVD_T(tsvdi_cuda_dc_leaves)
#define tsvdi_cuda_dc_moves TSVD_T(tsvdi_cuda_dc_moves)
#define tsvdi_cuda_dc_products TSVD_T(tsvdi_cuda_dc_products)
#define tsvdi_cuda_dc_roots TSVD_T(tsvdi_cuda_dc_roots)
#define tsvdi_cuda_dc_settle TSVD_T(tsvdi_cuda_dc_settle)
#define tsvdi_cuda_dc_weights TSVD_T(tsvdi_cuda_dc_weights)

#endif
#endif
