! tsvd for Fortran 2018: singular value decompositions of bidiagonal and of dense matrices, and
! inverses, by the C library tsvd.  It is shipped as source, since module files belong to one
! compiler: compile this file in your project, and link it with libtsvd.
!
!     call svd(d, e, s, L, R)         B = diag(d) + diag(e, 1) = L diag(s) R
!     call svdvals(d, e, s)
!     call dense_svd(a, s, U, Vh)     A = U diag(s) Vh
!     call dense_svdvals(a, s)
!     call dense_inverse(a, X)        A X = I
!     call select_values(d, e, low, high, first, count)
!
! Shapes.  d(n), e(n-1), s(k), L(n, k), R(k, n); a(m, n), U(m, k), Vh(k, n).  The last dimension of
! a batch is that of the matrices: d(n, batch), L(n, k, batch).
!
! Memory.  Arrays may be sections, also with negative strides: the library is told where entries
! lie, and nothing is copied on the way.  Contiguous results cost nothing more.  Results overlap
! neither the input nor each other.
!
! Errors.  stat is TSVD_OK or one of TSVD_ERR_..., and errmsg then says what happened and what
! helps.  Without stat, an error stops the program with that text.
!
! Threads.  Calls run at the same time in any number of threads, each with a handle of its own or
! with none: such a call makes one for itself.
!
! Programs use module tsvd.  Module tsvd_c is the C interface below it; tsvd.h has its words.

module tsvd_c
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_funptr, c_int, c_int64_t, &
        c_null_funptr, c_null_ptr, c_ptr, c_size_t
    implicit none
    private

    integer(c_int), parameter, public :: TSVD_OK = 0, TSVD_ERR_ARGUMENT = 1, &
        TSVD_ERR_NONFINITE = 2, TSVD_ERR_MEMORY = 3, TSVD_ERR_NO_CONVERGENCE = 4, &
        TSVD_ERR_INTERRUPTED = 5, TSVD_ERR_NO_DEVICE = 6, TSVD_ERR_UNSUPPORTED = 7, &
        TSVD_ERR_CUDA = 8, TSVD_ERR_LIBRARY = 9, TSVD_ERR_SINGULAR = 10
    integer(c_int), parameter, public :: TSVD_HOST = 1, TSVD_CUDA = 2
    integer(c_int), parameter, public :: TSVD_FLOAT64 = 1, TSVD_FLOAT32 = 2, &
        TSVD_COMPLEX128 = 3, TSVD_COMPLEX64 = 4
    integer(c_int), parameter, public :: TSVD_METHOD_AUTO = 0, TSVD_METHOD_DC = 1, &
        TSVD_METHOD_QR = 2, TSVD_METHOD_GIVENS = 3, TSVD_METHOD_BISECT = 4, &
        TSVD_METHOD_TWISTED = 5, TSVD_METHOD_JACOBI = 6
    integer(c_int), parameter, public :: TSVD_DEVICE_CPU = -1
    integer, parameter, public :: TSVD_MAX_DIMS = 34

    type, bind(c), public :: tsvd_c_error
        integer(c_int) :: status = TSVD_OK
        integer(c_int64_t) :: matrix = -1
        integer(c_int) :: device = TSVD_DEVICE_CPU
        integer(c_int64_t) :: sweeps = 0, wanted = 0, available = 0
        character(kind=c_char) :: text(1024) = '', advice(256) = ''
        integer(c_int64_t) :: reserved(8) = 0
    end type tsvd_c_error

    type, bind(c), public :: tsvd_c_array
        type(c_ptr) :: data = c_null_ptr
        integer(c_int) :: space = TSVD_HOST, dtype = TSVD_FLOAT64, ndim = 0
        integer(c_int64_t) :: shape(TSVD_MAX_DIMS) = 0, strides(TSVD_MAX_DIMS) = 0
    end type tsvd_c_array

    type, bind(c), public :: tsvd_c_config
        integer(c_size_t) :: size = 0
        integer(c_int) :: device = TSVD_DEVICE_CPU, threads = 0
        type(c_ptr) :: stream = c_null_ptr, blas = c_null_ptr, host_allocator = c_null_ptr, &
            device_allocator = c_null_ptr, library_paths = c_null_ptr
        integer(c_int64_t) :: library_path_count = 0
    end type tsvd_c_config

    type, bind(c), public :: tsvd_c_options
        integer(c_size_t) :: size = 0
        integer(c_int) :: method = TSVD_METHOD_AUTO, lower = 0
        integer(c_int64_t) :: first = 0, count = -1
        real(c_double) :: eps = -1
        integer(c_int64_t) :: max_sweeps = 0
        integer(c_int) :: check_finite = 1
        integer(c_int64_t) :: givens_blocks = 0, givens_threads = 0
        integer(c_int) :: givens_split = 1, fallback = 1, dense_stages = 0
        type(c_funptr) :: check = c_null_funptr
        type(c_ptr) :: check_arg = c_null_ptr, part = c_null_ptr
    end type tsvd_c_options

    ! What was done, summed over a batch.  The calls set size.
    type, bind(c), public :: tsvd_info
        integer(c_size_t) :: size = 0
        integer(c_int) :: method = TSVD_METHOD_AUTO
        integer(c_int64_t) :: sweeps = 0, iterations = 0, iterations_saved = 0, rotations = 0, &
            deflated = 0, refused = 0
        real(c_double) :: seconds_iterate = 0, seconds_vectors = 0, seconds_values = 0, &
            seconds_device = 0, seconds_reduce = 0, seconds_band = 0, seconds_chase = 0, &
            seconds_back = 0, seconds_total = 0
    end type tsvd_info

    type, bind(c), public :: tsvd_c_inverse_info
        integer(c_size_t) :: size = 0
        real(c_double) :: rcond = 0
        integer(c_int64_t) :: matrix = -1
        real(c_double) :: seconds_total = 0
    end type tsvd_c_inverse_info

    public :: tsvd_c_config_init, tsvd_c_create, tsvd_c_dense_inverse, tsvd_c_dense_svd, &
        tsvd_c_destroy, tsvd_c_options_init, tsvd_c_select, tsvd_c_svd, tsvd_c_version, tsvd_check

    abstract interface
        ! Called now and then with the share of the work that is done; not 0 stops the call.
        function tsvd_check(arg, done) bind(c) result(stop)
            import :: c_double, c_int, c_ptr
            type(c_ptr), value :: arg
            real(c_double), value :: done
            integer(c_int) :: stop
        end function tsvd_check
    end interface

    ! Arrays, info and results that may be NULL are addresses.
    interface
        subroutine tsvd_c_config_init(config, size) bind(c, name='tsvd_config_init')
            import :: c_size_t, tsvd_c_config
            type(tsvd_c_config), intent(out) :: config
            integer(c_size_t), value :: size
        end subroutine tsvd_c_config_init

        subroutine tsvd_c_options_init(options, size) bind(c, name='tsvd_options_init')
            import :: c_size_t, tsvd_c_options
            type(tsvd_c_options), intent(out) :: options
            integer(c_size_t), value :: size
        end subroutine tsvd_c_options_init

        function tsvd_c_create(config, handle, error) bind(c, name='tsvd_create') result(status)
            import :: c_int, c_ptr, tsvd_c_config, tsvd_c_error
            type(tsvd_c_config), intent(in) :: config
            type(c_ptr), intent(out) :: handle
            type(tsvd_c_error), intent(inout) :: error
            integer(c_int) :: status
        end function tsvd_c_create

        subroutine tsvd_c_destroy(handle) bind(c, name='tsvd_destroy')
            import :: c_ptr
            type(c_ptr), value :: handle
        end subroutine tsvd_c_destroy

        function tsvd_c_svd(handle, d, e, options, L, s, R, info, error) &
            bind(c, name='tsvd_svd') result(status)
            import :: c_int, c_ptr, tsvd_c_array, tsvd_c_error, tsvd_c_options
            type(c_ptr), value :: handle, L, R, info
            type(tsvd_c_array), intent(in) :: d, e, s
            type(tsvd_c_options), intent(in) :: options
            type(tsvd_c_error), intent(inout) :: error
            integer(c_int) :: status
        end function tsvd_c_svd

        function tsvd_c_select(handle, d, e, options, low, high, first, count, error) &
            bind(c, name='tsvd_select') result(status)
            import :: c_double, c_int, c_int64_t, c_ptr, tsvd_c_array, tsvd_c_error, tsvd_c_options
            type(c_ptr), value :: handle
            type(tsvd_c_array), intent(in) :: d, e
            type(tsvd_c_options), intent(in) :: options
            real(c_double), value :: low, high
            integer(c_int64_t), intent(inout) :: first, count
            type(tsvd_c_error), intent(inout) :: error
            integer(c_int) :: status
        end function tsvd_c_select

        function tsvd_c_dense_svd(handle, a, options, U, S, Vh, info, error) &
            bind(c, name='tsvd_dense_svd') result(status)
            import :: c_int, c_ptr, tsvd_c_array, tsvd_c_error, tsvd_c_options
            type(c_ptr), value :: handle, U, Vh, info
            type(tsvd_c_array), intent(in) :: a, S
            type(tsvd_c_options), intent(in) :: options
            type(tsvd_c_error), intent(inout) :: error
            integer(c_int) :: status
        end function tsvd_c_dense_svd

        function tsvd_c_dense_inverse(handle, a, options, refine, X, info, error) &
            bind(c, name='tsvd_dense_inverse') result(status)
            import :: c_int, c_ptr, tsvd_c_array, tsvd_c_error, tsvd_c_inverse_info, tsvd_c_options
            type(c_ptr), value :: handle
            type(tsvd_c_array), intent(in) :: a, X
            type(tsvd_c_options), intent(in) :: options
            integer(c_int), value :: refine
            type(tsvd_c_inverse_info), intent(inout) :: info
            type(tsvd_c_error), intent(inout) :: error
            integer(c_int) :: status
        end function tsvd_c_dense_inverse

        function tsvd_c_version() bind(c, name='tsvd_version') result(text)
            import :: c_ptr
            type(c_ptr) :: text
        end function tsvd_c_version
    end interface
end module tsvd_c

module tsvd
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_double_complex, c_f_pointer, &
        c_float, c_float_complex, c_funloc, c_int, c_int64_t, c_intptr_t, c_loc, c_null_char, &
        c_null_ptr, c_ptr, c_sizeof, c_associated
    use tsvd_c
    implicit none
    private

    public :: TSVD_OK, TSVD_ERR_ARGUMENT, TSVD_ERR_NONFINITE, TSVD_ERR_MEMORY, &
        TSVD_ERR_NO_CONVERGENCE, TSVD_ERR_INTERRUPTED, TSVD_ERR_NO_DEVICE, TSVD_ERR_UNSUPPORTED, &
        TSVD_ERR_CUDA, TSVD_ERR_LIBRARY, TSVD_ERR_SINGULAR
    public :: TSVD_METHOD_AUTO, TSVD_METHOD_DC, TSVD_METHOD_QR, TSVD_METHOD_GIVENS, &
        TSVD_METHOD_BISECT, TSVD_METHOD_TWISTED, TSVD_METHOD_JACOBI
    public :: TSVD_DEVICE_CPU, tsvd_check, tsvd_info
    public :: svd, svdvals, dense_svd, dense_svdvals, dense_inverse, select_values, tsvd_version

    ! What to compute and how; tsvd.h says what each field means.  The first value is number 1.
    type, public :: tsvd_options
        integer(c_int) :: method = TSVD_METHOD_AUTO
        logical :: lower = .false.
        integer(c_int64_t) :: first = 1, count = -1
        real(c_double) :: eps = -1
        integer(c_int64_t) :: max_sweeps = 0
        logical :: check_finite = .true.
        integer(c_int64_t) :: givens_blocks = 0, givens_threads = 0
        logical :: givens_split = .true., fallback = .true.
        integer(c_int) :: dense_stages = 0
        procedure(tsvd_check), pointer, nopass :: check => null()
        type(c_ptr) :: check_arg = c_null_ptr
    end type tsvd_options

    ! A device, and memory that calls share.  One thread at a time uses it.  It ends with close(),
    ! or where it goes out of scope, and is not copied.
    type, public :: tsvd_handle
        private
        type(c_ptr) :: address = c_null_ptr
    contains
        procedure :: open => open_handle
        procedure :: close => close_handle
        procedure, private :: copy_handle
        generic :: assignment(=) => copy_handle
        final :: end_handle
    end type tsvd_handle

    interface svd
        module procedure svd_d1, svd_d2, svd_s1, svd_s2
    end interface svd

    interface svdvals
        module procedure svdvals_d1, svdvals_d2, svdvals_s1, svdvals_s2
    end interface svdvals

    interface dense_svd
        module procedure dense_svd_d1, dense_svd_d2, dense_svd_s1, dense_svd_s2
        module procedure dense_svd_z1, dense_svd_z2, dense_svd_c1, dense_svd_c2
    end interface dense_svd

    interface dense_svdvals
        module procedure dense_svdvals_d1, dense_svdvals_d2, dense_svdvals_s1, dense_svdvals_s2
        module procedure dense_svdvals_z1, dense_svdvals_z2, dense_svdvals_c1, dense_svdvals_c2
    end interface dense_svdvals

    interface dense_inverse
        module procedure dense_inverse_d1, dense_inverse_d2, dense_inverse_s1, dense_inverse_s2
        module procedure dense_inverse_z1, dense_inverse_z2, dense_inverse_c1, dense_inverse_c2
    end interface dense_inverse

    interface select_values
        module procedure select_values_d, select_values_s
    end interface select_values

    ! The number at the end of a name is 1 for one matrix, and 2 for a batch.
    interface vector
        module procedure vector_d1, vector_d2, vector_s1, vector_s2
    end interface vector

    interface matrix
        module procedure matrix_d1, matrix_d2, matrix_s1, matrix_s2
        module procedure matrix_z1, matrix_z2, matrix_c1, matrix_c2
    end interface matrix

contains

    ! The version of the library.
    function tsvd_version() result(version)
        character(:), allocatable :: version
        character(kind=c_char), pointer :: text(:)

        call c_f_pointer(tsvd_c_version(), text, [64])
        version = words(text)
    end function tsvd_version

    ! ---- handles ----

    ! device: TSVD_DEVICE_CPU, the default, or the number of a CUDA device; arrays stay on the host.
    ! threads: of the host; 0, the default: as many as OpenMP uses.
    subroutine open_handle(self, device, threads, stat, errmsg)
        class(tsvd_handle), intent(inout) :: self
        integer, intent(in), optional :: device, threads
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(tsvd_c_config) :: config
        type(tsvd_c_error) :: error
        integer(c_int) :: status

        call self%close()
        call tsvd_c_config_init(config, c_sizeof(config))
        if (present(device)) config%device = int(device, c_int)
        if (present(threads)) config%threads = int(threads, c_int)
        status = tsvd_c_create(config, self%address, error)
        call report(status, error, stat, errmsg)
    end subroutine open_handle

    subroutine close_handle(self)
        class(tsvd_handle), intent(inout) :: self

        call tsvd_c_destroy(self%address)
        self%address = c_null_ptr
    end subroutine close_handle

    subroutine end_handle(self)
        type(tsvd_handle), intent(inout) :: self

        call self%close()
    end subroutine end_handle

    ! Two variables with one address would end it twice.
    subroutine copy_handle(self, from)
        class(tsvd_handle), intent(inout) :: self
        type(tsvd_handle), intent(in) :: from

        if (c_associated(from%address)) error stop 'an open tsvd_handle cannot be copied'
        call self%close()
    end subroutine copy_handle

    ! ---- calls ----

    ! The handle and the options of a call: own is true if the call must end the handle.
    subroutine begin(options, handle, c_options, address, own, status, error)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_c_options), intent(out) :: c_options
        type(c_ptr), intent(out) :: address
        logical, intent(out) :: own
        integer(c_int), intent(out) :: status
        type(tsvd_c_error), intent(inout) :: error
        type(tsvd_c_config) :: config

        call tsvd_c_options_init(c_options, c_sizeof(c_options))
        if (present(options)) then
            c_options%method = options%method
            c_options%lower = merge(1_c_int, 0_c_int, options%lower)
            c_options%first = options%first - 1
            c_options%count = options%count
            c_options%eps = options%eps
            c_options%max_sweeps = options%max_sweeps
            c_options%check_finite = merge(1_c_int, 0_c_int, options%check_finite)
            c_options%givens_blocks = options%givens_blocks
            c_options%givens_threads = options%givens_threads
            c_options%givens_split = merge(1_c_int, 0_c_int, options%givens_split)
            c_options%fallback = merge(1_c_int, 0_c_int, options%fallback)
            c_options%dense_stages = options%dense_stages
            if (associated(options%check)) c_options%check = c_funloc(options%check)
            c_options%check_arg = options%check_arg
        end if
        status = TSVD_OK
        own = .not. present(handle)
        if (own) then
            call tsvd_c_config_init(config, c_sizeof(config))
            status = tsvd_c_create(config, address, error)
        else
            address = handle%address
        end if
    end subroutine begin

    subroutine bidiagonal(d, e, s, options, handle, info, stat, errmsg, L, R)
        type(tsvd_c_array), intent(in) :: d, e, s
        type(tsvd_c_array), intent(in), optional, target :: L, R
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(tsvd_c_options) :: c_options
        type(tsvd_c_error) :: error
        type(tsvd_info), target :: facts
        type(c_ptr) :: address
        logical :: own
        integer(c_int) :: status

        facts%size = c_sizeof(facts)
        call begin(options, handle, c_options, address, own, status, error)
        if (status == TSVD_OK) status = tsvd_c_svd(address, d, e, c_options, address_of(L), s, &
                                                   address_of(R), c_loc(facts), error)
        if (own) call tsvd_c_destroy(address)
        if (present(info)) info = facts
        call report(status, error, stat, errmsg)
    end subroutine bidiagonal

    subroutine dense(a, s, options, handle, info, stat, errmsg, U, Vh)
        type(tsvd_c_array), intent(in) :: a, s
        type(tsvd_c_array), intent(in), optional, target :: U, Vh
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(tsvd_c_options) :: c_options
        type(tsvd_c_error) :: error
        type(tsvd_info), target :: facts
        type(c_ptr) :: address
        logical :: own
        integer(c_int) :: status

        facts%size = c_sizeof(facts)
        call begin(options, handle, c_options, address, own, status, error)
        if (status == TSVD_OK) status = tsvd_c_dense_svd(address, a, c_options, address_of(U), s, &
                                                         address_of(Vh), c_loc(facts), error)
        if (own) call tsvd_c_destroy(address)
        if (present(info)) info = facts
        call report(status, error, stat, errmsg)
    end subroutine dense

    subroutine inverse(a, X, refine, rcond, options, handle, stat, errmsg)
        type(tsvd_c_array), intent(in) :: a, X
        logical, intent(in), optional :: refine
        real(c_double), intent(out), optional :: rcond
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(tsvd_c_options) :: c_options
        type(tsvd_c_error) :: error
        type(tsvd_c_inverse_info) :: facts
        type(c_ptr) :: address
        logical :: own
        integer(c_int) :: status, step

        step = 0
        if (present(refine)) step = merge(1_c_int, 0_c_int, refine)
        facts%size = c_sizeof(facts)
        call begin(options, handle, c_options, address, own, status, error)
        if (status == TSVD_OK) &
            status = tsvd_c_dense_inverse(address, a, c_options, step, X, facts, error)
        if (own) call tsvd_c_destroy(address)
        if (present(rcond)) rcond = facts%rcond
        call report(status, error, stat, errmsg)
    end subroutine inverse

    subroutine interval(d, e, low, high, first, count, options, handle, stat, errmsg)
        type(tsvd_c_array), intent(in) :: d, e
        real(c_double), intent(in) :: low, high
        integer(c_int64_t), intent(out) :: first, count
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(tsvd_c_options) :: c_options
        type(tsvd_c_error) :: error
        type(c_ptr) :: address
        logical :: own
        integer(c_int) :: status

        first = 0
        count = 0
        call begin(options, handle, c_options, address, own, status, error)
        if (status == TSVD_OK) &
            status = tsvd_c_select(address, d, e, c_options, low, high, first, count, error)
        first = first + 1
        if (own) call tsvd_c_destroy(address)
        call report(status, error, stat, errmsg)
    end subroutine interval

    subroutine report(status, error, stat, errmsg)
        integer(c_int), intent(in) :: status
        type(tsvd_c_error), intent(in) :: error
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(:), allocatable :: text

        if (present(stat)) stat = status
        if (status == TSVD_OK) return
        text = words(error%text)
        if (words(error%advice) /= '') text = text // '; ' // words(error%advice)
        if (present(errmsg)) errmsg = text
        if (.not. present(stat)) error stop text
    end subroutine report

    ! A text of C.
    function words(text)
        character(kind=c_char), intent(in) :: text(:)
        character(:), allocatable :: words
        integer :: i, length

        length = 0
        do while (text(length + 1) /= c_null_char)
            length = length + 1
        end do
        allocate (character(length) :: words)
        do i = 1, length
            words(i:i) = text(i)
        end do
    end function words

    ! NULL if the array was left out.
    function address_of(array) result(address)
        type(tsvd_c_array), intent(in), optional, target :: array
        type(c_ptr) :: address

        address = c_null_ptr
        if (present(array)) address = c_loc(array)
    end function address_of

    ! Extents in C's order: the matrices of a batch first.
    subroutine set_shape(array, dtype, extents)
        type(tsvd_c_array), intent(inout) :: array
        integer(c_int), intent(in) :: dtype
        integer(c_int64_t), intent(in) :: extents(:)

        array%dtype = dtype
        array%ndim = size(extents)
        array%shape(:size(extents)) = extents
    end subroutine set_shape

    ! Strides, from the first entry and the next one along each dimension.
    subroutine set_place(array, first, next)
        type(tsvd_c_array), intent(inout) :: array
        type(c_ptr), intent(in) :: first, next(:)
        integer :: i

        array%data = first
        do i = 1, size(next)
            array%strides(i) = transfer(next(i), 0_c_intptr_t) - transfer(first, 0_c_intptr_t)
        end do
    end subroutine set_place

    ! ---- the specific procedures ----

    subroutine svd_d1(d, e, s, L, R, options, handle, info, stat, errmsg)
        real(c_double), intent(in), target :: d(:), e(:)
        real(c_double), intent(inout), target :: s(:)
        real(c_double), intent(inout), target :: L(:, :), R(:, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call bidiagonal(vector(d), vector(e), vector(s), options, handle, info, stat, errmsg, &
                        matrix(L), matrix(R))
    end subroutine svd_d1

    subroutine svd_d2(d, e, s, L, R, options, handle, info, stat, errmsg)
        real(c_double), intent(in), target :: d(:, :), e(:, :)
        real(c_double), intent(inout), target :: s(:, :)
        real(c_double), intent(inout), target :: L(:, :, :), R(:, :, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call bidiagonal(vector(d), vector(e), vector(s), options, handle, info, stat, errmsg, &
                        matrix(L), matrix(R))
    end subroutine svd_d2

    subroutine svd_s1(d, e, s, L, R, options, handle, info, stat, errmsg)
        real(c_float), intent(in), target :: d(:), e(:)
        real(c_float), intent(inout), target :: s(:)
        real(c_float), intent(inout), target :: L(:, :), R(:, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call bidiagonal(vector(d), vector(e), vector(s), options, handle, info, stat, errmsg, &
                        matrix(L), matrix(R))
    end subroutine svd_s1

    subroutine svd_s2(d, e, s, L, R, options, handle, info, stat, errmsg)
        real(c_float), intent(in), target :: d(:, :), e(:, :)
        real(c_float), intent(inout), target :: s(:, :)
        real(c_float), intent(inout), target :: L(:, :, :), R(:, :, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call bidiagonal(vector(d), vector(e), vector(s), options, handle, info, stat, errmsg, &
                        matrix(L), matrix(R))
    end subroutine svd_s2

    subroutine svdvals_d1(d, e, s, options, handle, info, stat, errmsg)
        real(c_double), intent(in), target :: d(:), e(:)
        real(c_double), intent(inout), target :: s(:)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call bidiagonal(vector(d), vector(e), vector(s), options, handle, info, stat, errmsg)
    end subroutine svdvals_d1

    subroutine svdvals_d2(d, e, s, options, handle, info, stat, errmsg)
        real(c_double), intent(in), target :: d(:, :), e(:, :)
        real(c_double), intent(inout), target :: s(:, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call bidiagonal(vector(d), vector(e), vector(s), options, handle, info, stat, errmsg)
    end subroutine svdvals_d2

    subroutine svdvals_s1(d, e, s, options, handle, info, stat, errmsg)
        real(c_float), intent(in), target :: d(:), e(:)
        real(c_float), intent(inout), target :: s(:)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call bidiagonal(vector(d), vector(e), vector(s), options, handle, info, stat, errmsg)
    end subroutine svdvals_s1

    subroutine svdvals_s2(d, e, s, options, handle, info, stat, errmsg)
        real(c_float), intent(in), target :: d(:, :), e(:, :)
        real(c_float), intent(inout), target :: s(:, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call bidiagonal(vector(d), vector(e), vector(s), options, handle, info, stat, errmsg)
    end subroutine svdvals_s2

    subroutine dense_svd_d1(a, s, U, Vh, options, handle, info, stat, errmsg)
        real(c_double), intent(in), target :: a(:, :)
        real(c_double), intent(inout), target :: s(:)
        real(c_double), intent(inout), target :: U(:, :), Vh(:, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg, matrix(U), &
                   matrix(Vh))
    end subroutine dense_svd_d1

    subroutine dense_svd_d2(a, s, U, Vh, options, handle, info, stat, errmsg)
        real(c_double), intent(in), target :: a(:, :, :)
        real(c_double), intent(inout), target :: s(:, :)
        real(c_double), intent(inout), target :: U(:, :, :), Vh(:, :, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg, matrix(U), &
                   matrix(Vh))
    end subroutine dense_svd_d2

    subroutine dense_svd_s1(a, s, U, Vh, options, handle, info, stat, errmsg)
        real(c_float), intent(in), target :: a(:, :)
        real(c_float), intent(inout), target :: s(:)
        real(c_float), intent(inout), target :: U(:, :), Vh(:, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg, matrix(U), &
                   matrix(Vh))
    end subroutine dense_svd_s1

    subroutine dense_svd_s2(a, s, U, Vh, options, handle, info, stat, errmsg)
        real(c_float), intent(in), target :: a(:, :, :)
        real(c_float), intent(inout), target :: s(:, :)
        real(c_float), intent(inout), target :: U(:, :, :), Vh(:, :, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg, matrix(U), &
                   matrix(Vh))
    end subroutine dense_svd_s2

    subroutine dense_svd_z1(a, s, U, Vh, options, handle, info, stat, errmsg)
        complex(c_double_complex), intent(in), target :: a(:, :)
        real(c_double), intent(inout), target :: s(:)
        complex(c_double_complex), intent(inout), target :: U(:, :), Vh(:, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg, matrix(U), &
                   matrix(Vh))
    end subroutine dense_svd_z1

    subroutine dense_svd_z2(a, s, U, Vh, options, handle, info, stat, errmsg)
        complex(c_double_complex), intent(in), target :: a(:, :, :)
        real(c_double), intent(inout), target :: s(:, :)
        complex(c_double_complex), intent(inout), target :: U(:, :, :), Vh(:, :, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg, matrix(U), &
                   matrix(Vh))
    end subroutine dense_svd_z2

    subroutine dense_svd_c1(a, s, U, Vh, options, handle, info, stat, errmsg)
        complex(c_float_complex), intent(in), target :: a(:, :)
        real(c_float), intent(inout), target :: s(:)
        complex(c_float_complex), intent(inout), target :: U(:, :), Vh(:, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg, matrix(U), &
                   matrix(Vh))
    end subroutine dense_svd_c1

    subroutine dense_svd_c2(a, s, U, Vh, options, handle, info, stat, errmsg)
        complex(c_float_complex), intent(in), target :: a(:, :, :)
        real(c_float), intent(inout), target :: s(:, :)
        complex(c_float_complex), intent(inout), target :: U(:, :, :), Vh(:, :, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg, matrix(U), &
                   matrix(Vh))
    end subroutine dense_svd_c2

    subroutine dense_svdvals_d1(a, s, options, handle, info, stat, errmsg)
        real(c_double), intent(in), target :: a(:, :)
        real(c_double), intent(inout), target :: s(:)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg)
    end subroutine dense_svdvals_d1

    subroutine dense_svdvals_d2(a, s, options, handle, info, stat, errmsg)
        real(c_double), intent(in), target :: a(:, :, :)
        real(c_double), intent(inout), target :: s(:, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg)
    end subroutine dense_svdvals_d2

    subroutine dense_svdvals_s1(a, s, options, handle, info, stat, errmsg)
        real(c_float), intent(in), target :: a(:, :)
        real(c_float), intent(inout), target :: s(:)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg)
    end subroutine dense_svdvals_s1

    subroutine dense_svdvals_s2(a, s, options, handle, info, stat, errmsg)
        real(c_float), intent(in), target :: a(:, :, :)
        real(c_float), intent(inout), target :: s(:, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg)
    end subroutine dense_svdvals_s2

    subroutine dense_svdvals_z1(a, s, options, handle, info, stat, errmsg)
        complex(c_double_complex), intent(in), target :: a(:, :)
        real(c_double), intent(inout), target :: s(:)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg)
    end subroutine dense_svdvals_z1

    subroutine dense_svdvals_z2(a, s, options, handle, info, stat, errmsg)
        complex(c_double_complex), intent(in), target :: a(:, :, :)
        real(c_double), intent(inout), target :: s(:, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg)
    end subroutine dense_svdvals_z2

    subroutine dense_svdvals_c1(a, s, options, handle, info, stat, errmsg)
        complex(c_float_complex), intent(in), target :: a(:, :)
        real(c_float), intent(inout), target :: s(:)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg)
    end subroutine dense_svdvals_c1

    subroutine dense_svdvals_c2(a, s, options, handle, info, stat, errmsg)
        complex(c_float_complex), intent(in), target :: a(:, :, :)
        real(c_float), intent(inout), target :: s(:, :)
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        type(tsvd_info), intent(inout), optional :: info
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call dense(matrix(a), vector(s), options, handle, info, stat, errmsg)
    end subroutine dense_svdvals_c2

    subroutine dense_inverse_d1(a, X, refine, rcond, options, handle, stat, errmsg)
        real(c_double), intent(in), target :: a(:, :)
        real(c_double), intent(inout), target :: X(:, :)
        logical, intent(in), optional :: refine
        real(c_double), intent(out), optional :: rcond
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call inverse(matrix(a), matrix(X), refine, rcond, options, handle, stat, errmsg)
    end subroutine dense_inverse_d1

    subroutine dense_inverse_d2(a, X, refine, rcond, options, handle, stat, errmsg)
        real(c_double), intent(in), target :: a(:, :, :)
        real(c_double), intent(inout), target :: X(:, :, :)
        logical, intent(in), optional :: refine
        real(c_double), intent(out), optional :: rcond
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call inverse(matrix(a), matrix(X), refine, rcond, options, handle, stat, errmsg)
    end subroutine dense_inverse_d2

    subroutine dense_inverse_s1(a, X, refine, rcond, options, handle, stat, errmsg)
        real(c_float), intent(in), target :: a(:, :)
        real(c_float), intent(inout), target :: X(:, :)
        logical, intent(in), optional :: refine
        real(c_double), intent(out), optional :: rcond
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call inverse(matrix(a), matrix(X), refine, rcond, options, handle, stat, errmsg)
    end subroutine dense_inverse_s1

    subroutine dense_inverse_s2(a, X, refine, rcond, options, handle, stat, errmsg)
        real(c_float), intent(in), target :: a(:, :, :)
        real(c_float), intent(inout), target :: X(:, :, :)
        logical, intent(in), optional :: refine
        real(c_double), intent(out), optional :: rcond
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call inverse(matrix(a), matrix(X), refine, rcond, options, handle, stat, errmsg)
    end subroutine dense_inverse_s2

    subroutine dense_inverse_z1(a, X, refine, rcond, options, handle, stat, errmsg)
        complex(c_double_complex), intent(in), target :: a(:, :)
        complex(c_double_complex), intent(inout), target :: X(:, :)
        logical, intent(in), optional :: refine
        real(c_double), intent(out), optional :: rcond
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call inverse(matrix(a), matrix(X), refine, rcond, options, handle, stat, errmsg)
    end subroutine dense_inverse_z1

    subroutine dense_inverse_z2(a, X, refine, rcond, options, handle, stat, errmsg)
        complex(c_double_complex), intent(in), target :: a(:, :, :)
        complex(c_double_complex), intent(inout), target :: X(:, :, :)
        logical, intent(in), optional :: refine
        real(c_double), intent(out), optional :: rcond
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call inverse(matrix(a), matrix(X), refine, rcond, options, handle, stat, errmsg)
    end subroutine dense_inverse_z2

    subroutine dense_inverse_c1(a, X, refine, rcond, options, handle, stat, errmsg)
        complex(c_float_complex), intent(in), target :: a(:, :)
        complex(c_float_complex), intent(inout), target :: X(:, :)
        logical, intent(in), optional :: refine
        real(c_double), intent(out), optional :: rcond
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call inverse(matrix(a), matrix(X), refine, rcond, options, handle, stat, errmsg)
    end subroutine dense_inverse_c1

    subroutine dense_inverse_c2(a, X, refine, rcond, options, handle, stat, errmsg)
        complex(c_float_complex), intent(in), target :: a(:, :, :)
        complex(c_float_complex), intent(inout), target :: X(:, :, :)
        logical, intent(in), optional :: refine
        real(c_double), intent(out), optional :: rcond
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call inverse(matrix(a), matrix(X), refine, rcond, options, handle, stat, errmsg)
    end subroutine dense_inverse_c2

    subroutine select_values_d(d, e, low, high, first, count, options, handle, stat, errmsg)
        real(c_double), intent(in), target :: d(:), e(:)
        real(c_double), intent(in) :: low, high
        integer(c_int64_t), intent(out) :: first, count
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call interval(vector(d), vector(e), real(low, c_double), real(high, c_double), first, &
                      count, options, handle, stat, errmsg)
    end subroutine select_values_d

    subroutine select_values_s(d, e, low, high, first, count, options, handle, stat, errmsg)
        real(c_float), intent(in), target :: d(:), e(:)
        real(c_float), intent(in) :: low, high
        integer(c_int64_t), intent(out) :: first, count
        type(tsvd_options), intent(in), optional :: options
        type(tsvd_handle), intent(in), optional :: handle
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call interval(vector(d), vector(e), real(low, c_double), real(high, c_double), first, &
                      count, options, handle, stat, errmsg)
    end subroutine select_values_s

    ! ---- where arrays lie ----

    function vector_d1(a) result(array)
        real(c_double), intent(in), target :: a(:)
        type(tsvd_c_array) :: array

        call set_shape(array, TSVD_FLOAT64, shape(a, c_int64_t))
        if (size(a) > 0) call set_place(array, c_loc(a(1)), [c_loc(a(min(2, size(a))))])
    end function vector_d1

    function vector_d2(a) result(array)
        real(c_double), intent(in), target :: a(:, :)
        type(tsvd_c_array) :: array

        call set_shape(array, TSVD_FLOAT64, [size(a, 2, c_int64_t), size(a, 1, c_int64_t)])
        if (size(a) > 0) call set_place(array, c_loc(a(1, 1)), &
            [c_loc(a(1, min(2, size(a, 2)))), c_loc(a(min(2, size(a, 1)), 1))])
    end function vector_d2

    function vector_s1(a) result(array)
        real(c_float), intent(in), target :: a(:)
        type(tsvd_c_array) :: array

        call set_shape(array, TSVD_FLOAT32, shape(a, c_int64_t))
        if (size(a) > 0) call set_place(array, c_loc(a(1)), [c_loc(a(min(2, size(a))))])
    end function vector_s1

    function vector_s2(a) result(array)
        real(c_float), intent(in), target :: a(:, :)
        type(tsvd_c_array) :: array

        call set_shape(array, TSVD_FLOAT32, [size(a, 2, c_int64_t), size(a, 1, c_int64_t)])
        if (size(a) > 0) call set_place(array, c_loc(a(1, 1)), &
            [c_loc(a(1, min(2, size(a, 2)))), c_loc(a(min(2, size(a, 1)), 1))])
    end function vector_s2

    function matrix_d1(a) result(array)
        real(c_double), intent(in), target :: a(:, :)
        type(tsvd_c_array) :: array

        call set_shape(array, TSVD_FLOAT64, shape(a, c_int64_t))
        if (size(a) > 0) call set_place(array, c_loc(a(1, 1)), &
            [c_loc(a(min(2, size(a, 1)), 1)), c_loc(a(1, min(2, size(a, 2))))])
    end function matrix_d1

    function matrix_d2(a) result(array)
        real(c_double), intent(in), target :: a(:, :, :)
        type(tsvd_c_array) :: array

        call set_shape(array, TSVD_FLOAT64, [size(a, 3, c_int64_t), size(a, 1, c_int64_t), &
                                     size(a, 2, c_int64_t)])
        if (size(a) > 0) call set_place(array, c_loc(a(1, 1, 1)), &
            [c_loc(a(1, 1, min(2, size(a, 3)))), c_loc(a(min(2, size(a, 1)), 1, 1)), &
             c_loc(a(1, min(2, size(a, 2)), 1))])
    end function matrix_d2

    function matrix_s1(a) result(array)
        real(c_float), intent(in), target :: a(:, :)
        type(tsvd_c_array) :: array

        call set_shape(array, TSVD_FLOAT32, shape(a, c_int64_t))
        if (size(a) > 0) call set_place(array, c_loc(a(1, 1)), &
            [c_loc(a(min(2, size(a, 1)), 1)), c_loc(a(1, min(2, size(a, 2))))])
    end function matrix_s1

    function matrix_s2(a) result(array)
        real(c_float), intent(in), target :: a(:, :, :)
        type(tsvd_c_array) :: array

        call set_shape(array, TSVD_FLOAT32, [size(a, 3, c_int64_t), size(a, 1, c_int64_t), &
                                     size(a, 2, c_int64_t)])
        if (size(a) > 0) call set_place(array, c_loc(a(1, 1, 1)), &
            [c_loc(a(1, 1, min(2, size(a, 3)))), c_loc(a(min(2, size(a, 1)), 1, 1)), &
             c_loc(a(1, min(2, size(a, 2)), 1))])
    end function matrix_s2

    function matrix_z1(a) result(array)
        complex(c_double_complex), intent(in), target :: a(:, :)
        type(tsvd_c_array) :: array

        call set_shape(array, TSVD_COMPLEX128, shape(a, c_int64_t))
        if (size(a) > 0) call set_place(array, c_loc(a(1, 1)), &
            [c_loc(a(min(2, size(a, 1)), 1)), c_loc(a(1, min(2, size(a, 2))))])
    end function matrix_z1

    function matrix_z2(a) result(array)
        complex(c_double_complex), intent(in), target :: a(:, :, :)
        type(tsvd_c_array) :: array

        call set_shape(array, TSVD_COMPLEX128, [size(a, 3, c_int64_t), size(a, 1, c_int64_t), &
                                     size(a, 2, c_int64_t)])
        if (size(a) > 0) call set_place(array, c_loc(a(1, 1, 1)), &
            [c_loc(a(1, 1, min(2, size(a, 3)))), c_loc(a(min(2, size(a, 1)), 1, 1)), &
             c_loc(a(1, min(2, size(a, 2)), 1))])
    end function matrix_z2

    function matrix_c1(a) result(array)
        complex(c_float_complex), intent(in), target :: a(:, :)
        type(tsvd_c_array) :: array

        call set_shape(array, TSVD_COMPLEX64, shape(a, c_int64_t))
        if (size(a) > 0) call set_place(array, c_loc(a(1, 1)), &
            [c_loc(a(min(2, size(a, 1)), 1)), c_loc(a(1, min(2, size(a, 2))))])
    end function matrix_c1

    function matrix_c2(a) result(array)
        complex(c_float_complex), intent(in), target :: a(:, :, :)
        type(tsvd_c_array) :: array

        call set_shape(array, TSVD_COMPLEX64, [size(a, 3, c_int64_t), size(a, 1, c_int64_t), &
                                     size(a, 2, c_int64_t)])
        if (size(a) > 0) call set_place(array, c_loc(a(1, 1, 1)), &
            [c_loc(a(1, 1, min(2, size(a, 3)))), c_loc(a(min(2, size(a, 1)), 1, 1)), &
             c_loc(a(1, min(2, size(a, 2)), 1))])
    end function matrix_c2
end module tsvd
