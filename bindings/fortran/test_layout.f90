! Prints the structures and the numbers of module tsvd_c as tests/abi/layout.c prints those of C:
! the size of each structure, the offset and the size of each field, and the enumerators.
program test_layout
    use, intrinsic :: iso_c_binding, only: c_int, c_intptr_t, c_loc, c_ptr, c_sizeof, c_size_t
    use tsvd_c
    implicit none

    type(tsvd_c_error), target :: error
    type(tsvd_c_array), target :: array
    type(tsvd_c_config), target :: config
    type(tsvd_c_options), target :: options
    type(tsvd_info), target :: info
    type(tsvd_c_inverse_info), target :: inverse
    character(20) :: name
    type(c_ptr) :: start

    call structure('error', c_loc(error), c_sizeof(error))
    call field('status', c_loc(error%status), c_sizeof(error%status))
    call field('matrix', c_loc(error%matrix), c_sizeof(error%matrix))
    call field('device', c_loc(error%device), c_sizeof(error%device))
    call field('sweeps', c_loc(error%sweeps), c_sizeof(error%sweeps))
    call field('wanted', c_loc(error%wanted), c_sizeof(error%wanted))
    call field('available', c_loc(error%available), c_sizeof(error%available))
    call field('text', c_loc(error%text), c_sizeof(error%text))
    call field('advice', c_loc(error%advice), c_sizeof(error%advice))
    call field('reserved', c_loc(error%reserved), c_sizeof(error%reserved))

    call structure('array', c_loc(array), c_sizeof(array))
    call field('data', c_loc(array%data), c_sizeof(array%data))
    call field('space', c_loc(array%space), c_sizeof(array%space))
    call field('dtype', c_loc(array%dtype), c_sizeof(array%dtype))
    call field('ndim', c_loc(array%ndim), c_sizeof(array%ndim))
    call field('shape', c_loc(array%shape), c_sizeof(array%shape))
    call field('strides', c_loc(array%strides), c_sizeof(array%strides))

    call structure('config', c_loc(config), c_sizeof(config))
    call field('size', c_loc(config%size), c_sizeof(config%size))
    call field('device', c_loc(config%device), c_sizeof(config%device))
    call field('threads', c_loc(config%threads), c_sizeof(config%threads))
    call field('stream', c_loc(config%stream), c_sizeof(config%stream))
    call field('blas', c_loc(config%blas), c_sizeof(config%blas))
    call field('host_allocator', c_loc(config%host_allocator), c_sizeof(config%host_allocator))
    call field('device_allocator', c_loc(config%device_allocator), &
               c_sizeof(config%device_allocator))
    call field('library_paths', c_loc(config%library_paths), c_sizeof(config%library_paths))
    call field('library_path_count', c_loc(config%library_path_count), &
               c_sizeof(config%library_path_count))

    call structure('options', c_loc(options), c_sizeof(options))
    call field('size', c_loc(options%size), c_sizeof(options%size))
    call field('method', c_loc(options%method), c_sizeof(options%method))
    call field('lower', c_loc(options%lower), c_sizeof(options%lower))
    call field('first', c_loc(options%first), c_sizeof(options%first))
    call field('count', c_loc(options%count), c_sizeof(options%count))
    call field('eps', c_loc(options%eps), c_sizeof(options%eps))
    call field('max_sweeps', c_loc(options%max_sweeps), c_sizeof(options%max_sweeps))
    call field('check_finite', c_loc(options%check_finite), c_sizeof(options%check_finite))
    call field('givens_blocks', c_loc(options%givens_blocks), c_sizeof(options%givens_blocks))
    call field('givens_threads', c_loc(options%givens_threads), c_sizeof(options%givens_threads))
    call field('givens_split', c_loc(options%givens_split), c_sizeof(options%givens_split))
    call field('fallback', c_loc(options%fallback), c_sizeof(options%fallback))
    call field('dense_stages', c_loc(options%dense_stages), c_sizeof(options%dense_stages))
    call field('check', c_loc(options%check), c_sizeof(options%check))
    call field('check_arg', c_loc(options%check_arg), c_sizeof(options%check_arg))
    call field('part', c_loc(options%part), c_sizeof(options%part))

    call structure('info', c_loc(info), c_sizeof(info))
    call field('size', c_loc(info%size), c_sizeof(info%size))
    call field('method', c_loc(info%method), c_sizeof(info%method))
    call field('sweeps', c_loc(info%sweeps), c_sizeof(info%sweeps))
    call field('iterations', c_loc(info%iterations), c_sizeof(info%iterations))
    call field('iterations_saved', c_loc(info%iterations_saved), c_sizeof(info%iterations_saved))
    call field('rotations', c_loc(info%rotations), c_sizeof(info%rotations))
    call field('deflated', c_loc(info%deflated), c_sizeof(info%deflated))
    call field('refused', c_loc(info%refused), c_sizeof(info%refused))
    call field('seconds_iterate', c_loc(info%seconds_iterate), c_sizeof(info%seconds_iterate))
    call field('seconds_vectors', c_loc(info%seconds_vectors), c_sizeof(info%seconds_vectors))
    call field('seconds_values', c_loc(info%seconds_values), c_sizeof(info%seconds_values))
    call field('seconds_device', c_loc(info%seconds_device), c_sizeof(info%seconds_device))
    call field('seconds_reduce', c_loc(info%seconds_reduce), c_sizeof(info%seconds_reduce))
    call field('seconds_band', c_loc(info%seconds_band), c_sizeof(info%seconds_band))
    call field('seconds_chase', c_loc(info%seconds_chase), c_sizeof(info%seconds_chase))
    call field('seconds_back', c_loc(info%seconds_back), c_sizeof(info%seconds_back))
    call field('seconds_total', c_loc(info%seconds_total), c_sizeof(info%seconds_total))

    call structure('inverse_info', c_loc(inverse), c_sizeof(inverse))
    call field('size', c_loc(inverse%size), c_sizeof(inverse%size))
    call field('rcond', c_loc(inverse%rcond), c_sizeof(inverse%rcond))
    call field('matrix', c_loc(inverse%matrix), c_sizeof(inverse%matrix))
    call field('seconds_total', c_loc(inverse%seconds_total), c_sizeof(inverse%seconds_total))

    call number('OK', TSVD_OK)
    call number('ERR_ARGUMENT', TSVD_ERR_ARGUMENT)
    call number('ERR_NONFINITE', TSVD_ERR_NONFINITE)
    call number('ERR_MEMORY', TSVD_ERR_MEMORY)
    call number('ERR_NO_CONVERGENCE', TSVD_ERR_NO_CONVERGENCE)
    call number('ERR_INTERRUPTED', TSVD_ERR_INTERRUPTED)
    call number('ERR_NO_DEVICE', TSVD_ERR_NO_DEVICE)
    call number('ERR_UNSUPPORTED', TSVD_ERR_UNSUPPORTED)
    call number('ERR_CUDA', TSVD_ERR_CUDA)
    call number('ERR_LIBRARY', TSVD_ERR_LIBRARY)
    call number('ERR_SINGULAR', TSVD_ERR_SINGULAR)
    call number('HOST', TSVD_HOST)
    call number('CUDA', TSVD_CUDA)
    call number('FLOAT64', TSVD_FLOAT64)
    call number('FLOAT32', TSVD_FLOAT32)
    call number('COMPLEX128', TSVD_COMPLEX128)
    call number('COMPLEX64', TSVD_COMPLEX64)
    call number('METHOD_AUTO', TSVD_METHOD_AUTO)
    call number('METHOD_DC', TSVD_METHOD_DC)
    call number('METHOD_QR', TSVD_METHOD_QR)
    call number('METHOD_GIVENS', TSVD_METHOD_GIVENS)
    call number('METHOD_BISECT', TSVD_METHOD_BISECT)
    call number('METHOD_TWISTED', TSVD_METHOD_TWISTED)
    call number('METHOD_JACOBI', TSVD_METHOD_JACOBI)
    call number('MAX_DIMS', int(TSVD_MAX_DIMS, c_int))
    call number('DEVICE_CPU', TSVD_DEVICE_CPU)

contains

    subroutine structure(what, at, size)
        character(*), intent(in) :: what
        type(c_ptr), intent(in) :: at
        integer(c_size_t), intent(in) :: size

        name = what
        start = at
        print '(3a, i0)', 'struct tsvd_', what, ' ', size
    end subroutine structure

    subroutine field(what, at, size)
        character(*), intent(in) :: what
        type(c_ptr), intent(in) :: at
        integer(c_size_t), intent(in) :: size

        print '(5a, i0, 1x, i0)', 'field tsvd_', trim(name), '.', what, ' ', &
            transfer(at, 0_c_intptr_t) - transfer(start, 0_c_intptr_t), size
    end subroutine field

    subroutine number(what, value)
        character(*), intent(in) :: what
        integer(c_int), intent(in) :: value

        print '(3a, i0)', 'enum TSVD_', what, ' ', value
    end subroutine number
end program test_layout
