! Decompositions and inverses from Fortran, against bounds; and what calls refuse.  It is compiled
! once with KIND=real64, and once with real32.
program test_tsvd
    use, intrinsic :: iso_c_binding, only: c_double, c_int, c_int64_t, c_loc, c_ptr, c_f_pointer
    use, intrinsic :: iso_fortran_env, only: int64, real32, real64
    use, intrinsic :: ieee_arithmetic, only: ieee_quiet_nan, ieee_value
    use tsvd
    implicit none

    integer, parameter :: wp = KIND
    real(wp), parameter :: u = epsilon(1._wp)
    integer :: passed = 0, failed = 0

    call test_families()
    call test_selection()
    call test_places()
    call test_batches()
    call test_dense()
    call test_complex()
    call test_inverse()
    call test_errors()
    call test_handles()
    print '(2a, i0, a, i0, a)', merge('real64', 'real32', wp == real64), ': ', passed, ' passed, ', failed, ' failed'
    if (failed > 0) error stop 1

contains

    subroutine check(good, what)
        logical, intent(in) :: good
        character(*), intent(in) :: what

        if (good) then
            passed = passed + 1
        else
            failed = failed + 1
            print '(2a)', 'failed: ', what
        end if
    end subroutine check

    ! measure <= bound, which NaN is not.
    subroutine bounded(measure, bound, what)
        real(wp), intent(in) :: measure, bound
        character(*), intent(in) :: what
        character(32) :: numbers

        write (numbers, '(2es12.3)') measure, bound
        call check(measure <= bound, what // numbers)
    end subroutine bounded

    function identity(n) result(a)
        integer, intent(in) :: n
        real(wp) :: a(n, n)
        integer :: i

        a = 0
        do i = 1, n
            a(i, i) = 1
        end do
    end function identity

    function diagonal(s) result(a)
        real(wp), intent(in) :: s(:)
        real(wp) :: a(size(s), size(s))
        integer :: i

        a = identity(size(s))
        do i = 1, size(s)
            a(i, i) = s(i)
        end do
    end function diagonal

    function bidiagonal(d, e, lower) result(b)
        real(wp), intent(in) :: d(:), e(:)
        logical, intent(in) :: lower
        real(wp) :: b(size(d), size(d))
        integer :: i

        b = diagonal(d)
        do i = 1, size(e)
            if (lower) then
                b(i + 1, i) = e(i)
            else
                b(i, i + 1) = e(i)
            end if
        end do
    end function bidiagonal

    ! Residual, orthogonality and order of the values of A = U diag(s) Vh.
    subroutine check_svd(a, u_, s, vh, what)
        real(wp), intent(in) :: a(:, :), u_(:, :), s(:), vh(:, :)
        character(*), intent(in) :: what
        real(wp) :: bound
        integer :: k

        bound = 10 * max(1, maxval(shape(a))) * u
        call bounded(norm2(a - matmul(u_, matmul(diagonal(s), vh))), &
                     bound * max(norm2(a), tiny(u)), what // ', residual')
        call bounded(norm2(matmul(transpose(u_), u_) - identity(size(s))), bound, &
                     what // ', left vectors')
        call bounded(norm2(matmul(vh, transpose(vh)) - identity(size(s))), bound, &
                     what // ', right vectors')
        call check(all(s >= 0) .and. all(s(2:) <= s(:size(s) - 1)), what // ', order')
        call check(all([(u_(maxloc(abs(u_(:, k)), 1), k) > 0, k = 1, size(s))]), what // ', signs')
    end subroutine check_svd

    ! The diagonals of a matrix that is hard in one way.
    subroutine family(name, d, e)
        character(*), intent(in) :: name
        real(wp), intent(out) :: d(:), e(:)
        integer :: i, n

        n = size(d)
        call random_number(d)
        call random_number(e)
        select case (name)
        case ('graded')
            d = [(10._wp**(-20 * real(i, wp) / n), i = 1, n)]
            e = d(2:)
        case ('clustered')
            d = 1 + u * d
            e = u * e
        case ('zeros')
            d(::3) = 0
            e(::5) = 0
        case ('constant')
            d = 1
            e = 1
        case ('deficient')
            d(n / 2 + 1:) = 0
        case ('null')
            d = 0
            e = 0
        end select
    end subroutine family

    subroutine test_families()
        character(*), parameter :: names(*) = [character(9) :: 'random', 'graded', 'clustered', &
                                               'zeros', 'constant', 'deficient', 'null']
        integer, parameter :: orders(*) = [0, 1, 2, 3, 40, 150]
        integer(c_int), parameter :: methods(*) = [TSVD_METHOD_AUTO, TSVD_METHOD_DC, &
                                                   TSVD_METHOD_QR, TSVD_METHOD_GIVENS]
        real(wp), allocatable :: d(:), e(:), s(:), values(:), L(:, :), R(:, :)
        character(:), allocatable :: what
        character(16) :: number
        type(tsvd_options) :: options
        type(tsvd_info) :: info
        integer :: i, j, k, lower, n

        do i = 1, size(names)
            do j = 1, size(orders)
                n = orders(j)
                allocate (d(n), e(max(0, n - 1)), s(n), values(n), L(n, n), R(n, n))
                call family(names(i), d, e)
                do k = 1, size(methods)
                    do lower = 0, 1
                        options = tsvd_options(method=methods(k), lower=lower == 1)
                        write (number, '(i0, 2(", ", i0))') n, methods(k), lower
                        what = trim(names(i)) // ' ' // trim(number)
                        call svd(d, e, s, L, R, options, info=info)
                        call check_svd(bidiagonal(d, e, options%lower), L, s, R, what)
                        call check(n == 0 .or. info%method /= TSVD_METHOD_AUTO, what // ', method')
                        call svdvals(d, e, values, options)
                        call bounded(norm2(s - values), 8 * u * norm2(s) + tiny(u), &
                                     what // ', values alone')
                    end do
                end do
                deallocate (d, e, s, values, L, R)
            end do
        end do
    end subroutine test_families

    subroutine test_selection()
        integer, parameter :: n = 60
        real(wp) :: d(n), e(n - 1), s(n), all_L(n, n), all_R(n, n)
        real(wp), allocatable :: part(:), L(:, :), R(:, :)
        integer(int64) :: first, count, k
        integer :: i

        call family('random', d, e)
        call svd(d, e, s, all_L, all_R)
        allocate (part(7), L(n, 7), R(7, n))
        call svd(d, e, part, L, R, tsvd_options(first=5, count=7))
        call bounded(norm2(part - s(5:11)), 8 * u * s(5), 'part of the values')
        do i = 1, 7 ! the vectors of simple values are the same, signs too
            call bounded(norm2(L(:, i) - all_L(:, 4 + i)), 1000 * n * u, 'a part of L')
            call bounded(norm2(R(i, :) - all_R(4 + i, :)), 1000 * n * u, 'a part of R')
        end do
        call select_values(d, e, s(20), s(10), first, count)
        call check(abs(first - 10) <= 1 .and. abs(first + count - 20) <= 1, 'interval')
        k = count
        deallocate (part)
        allocate (part(k))
        call svdvals(d, e, part, tsvd_options(first=first, count=k))
        call check(all(part > s(20) * (1 - 8 * u)) .and. all(part <= s(10) * (1 + 8 * u)), &
                   'values of an interval')
        call select_values(d, e, 2 * s(1), 3 * s(1), first, count)
        call check(count == 0, 'an empty interval')
    end subroutine test_selection

    ! Sections, also backwards, are read and written where they lie, and nothing beside them.
    subroutine test_places()
        integer, parameter :: n = 33
        real(wp) :: d(n), e(n - 1), s(n), L(n, n), R(n, n)
        real(wp) :: wide(3 * n), wide_e(2 * n), wide_s(2 * n), big(2 * n, 3 * n), back(n, n)

        call family('random', d, e)
        call svd(d, e, s, L, R)
        wide = -1
        wide(::3) = d(n:1:-1)
        wide_e(2:2 * n - 2:2) = e
        wide_s = -1
        big = -1
        call svd(wide(3 * n - 2:1:-3), wide_e(2:2 * n - 2:2), wide_s(2::2), big(::2, 2::3), back)
        call check(all(wide_s(2::2) == s) .and. all(wide_s(1::2) == -1), 'values in a section')
        call bounded(norm2(big(::2, 2::3) - L) + norm2(back - R), 100 * n * u, &
                     'vectors in a section')
        call check(all(big(2::2, :) == -1) .and. all(big(:, 1::3) == -1) .and. &
                   all(big(:, 3::3) == -1), 'what is beside a section')
        call dense_svd(bidiagonal(d(n:1:-1), e, .false.), s, L, R)
        wide = 0
        big = 0
        big(::2, ::3) = bidiagonal(d(n:1:-1), e, .false.)
        call dense_svdvals(big(::2, ::3), d)
        call bounded(norm2(d - s), 100 * u * s(1), 'a dense section')
    end subroutine test_places

    subroutine test_batches()
        integer, parameter :: n = 12, m = 9, many = 5
        real(wp) :: d(n, many), e(n - 1, many), s(n, many), values(n, many)
        real(wp) :: L(n, n, many), R(n, n, many)
        real(wp) :: a(m, n, many), left(m, m, many), sd(m, many), Vh(m, n, many)
        real(wp) :: x(n, n, many)
        integer :: i

        do i = 1, many
            call family('random', d(:, i), e(:, i))
        end do
        call svd(d, e, s, L, R)
        call svdvals(d, e, values)
        call bounded(norm2(s - values), 8 * u * norm2(s), 'values of a batch')
        call random_number(a)
        call dense_svd(a, sd, left, Vh)
        do i = 1, many
            call check_svd(bidiagonal(d(:, i), e(:, i), .false.), L(:, :, i), s(:, i), R(:, :, i), &
                           'batch')
            call check_svd(a(:, :, i), left(:, :, i), sd(:, i), Vh(:, :, i), 'dense batch')
        end do
        call dense_svdvals(a, values(:m, :))
        call bounded(norm2(values(:m, :) - sd), 10 * n * u * norm2(sd), 'values of a dense batch')
        do i = 1, many
            L(:, :, i) = L(:, :, i) + 4 * identity(n)
        end do
        call dense_inverse(L, x)
        do i = 1, many
            call bounded(norm2(matmul(L(:, :, i), x(:, :, i)) - identity(n)), 100 * n * u, &
                         'inverses of a batch')
        end do
    end subroutine test_batches

    subroutine test_dense()
        integer, parameter :: rows(*) = [1, 30, 50, 7, 80, 0], columns(*) = [1, 30, 20, 90, 1, 3]
        real(wp), allocatable :: a(:, :), s(:), values(:), U_(:, :), Vh(:, :)
        real(wp), allocatable :: full(:, :), fullh(:, :)
        integer :: i, m, n, p

        do i = 1, size(rows)
            m = rows(i)
            n = columns(i)
            p = min(m, n)
            allocate (a(m, n), s(p), values(p), U_(m, p), Vh(p, n), full(m, m), fullh(n, n))
            call random_number(a)
            if (p > 5) a(:, n) = a(:, 1) ! deficient rank
            call dense_svd(a, s, U_, Vh)
            call check_svd(a, U_, s, Vh, 'dense')
            call dense_svdvals(a, values)
            call bounded(norm2(values - s), 10 * max(m, n) * u * norm2(s), 'dense, values alone')
            call dense_svd(a, s, full, fullh, tsvd_options(method=TSVD_METHOD_AUTO))
            call check_svd(a, full(:, :p), s, fullh(:p, :), 'dense, full matrices')
            call bounded(norm2(matmul(transpose(full), full) - identity(m)), 10 * max(m, 1) * u, &
                         'dense, a full basis')
            if (p > 5) then
                call dense_svd(a, values(2:4), U_(:, 2:4), Vh(2:4, :), &
                               tsvd_options(first=2, count=3))
                call bounded(norm2(values(2:4) - s(2:4)), 10 * max(m, n) * u * s(1), &
                             'dense, a part')
            end if
            deallocate (a, s, values, U_, Vh, full, fullh)
        end do
    end subroutine test_dense

    subroutine test_complex()
        integer, parameter :: m = 25, n = 18
        complex(wp) :: a(m, n), U_(m, n), Vh(n, n), x(n, n), square(n, n), batch(n, n, 2), &
            inverses(n, n, 2), Ub(n, n, 2), Vhb(n, n, 2)
        real(wp) :: re(m, n), im(m, n), s(n), values(n), sb(n, 2), valuesb(n, 2)
        integer :: i

        call random_number(re)
        call random_number(im)
        a = cmplx(re, im, wp)
        call dense_svd(a, s, U_, Vh)
        call dense_svdvals(a, values)
        call bounded(norm2(values - s), 10 * m * u * norm2(s), 'complex, values alone')
        call bounded(distance(a, matmul(U_, matmul(cmplx(diagonal(s), 0, wp), Vh))), &
                     10 * m * u * s(1), 'complex, residual')
        call bounded(distance(matmul(conjg(transpose(U_)), U_), cmplx(identity(n), 0, wp)), &
                     10 * m * u, 'complex, left vectors')
        call bounded(distance(matmul(Vh, conjg(transpose(Vh))), cmplx(identity(n), 0, wp)), &
                     10 * m * u, 'complex, right vectors')
        square = a(:n, :) + 9 * cmplx(identity(n), 0, wp)
        call dense_inverse(square, x, refine=.true.)
        call bounded(distance(matmul(square, x), cmplx(identity(n), 0, wp)), 100 * n * u, &
                     'complex, inverse')
        batch(:, :, 1) = square
        batch(:, :, 2) = transpose(square)
        call dense_inverse(batch, inverses)
        call dense_svd(batch, sb, Ub, Vhb)
        call dense_svdvals(batch, valuesb)
        call bounded(norm2(sb - valuesb), 10 * n * u * norm2(sb), 'complex batch, values alone')
        do i = 1, 2
            call bounded(distance(matmul(batch(:, :, i), inverses(:, :, i)), &
                                  cmplx(identity(n), 0, wp)), 100 * n * u, 'complex inverses')
            call bounded(distance(batch(:, :, i), matmul(Ub(:, :, i), matmul( &
                         cmplx(diagonal(sb(:, i)), 0, wp), Vhb(:, :, i)))), 10 * n * u * sb(1, i), &
                         'complex batch, residual')
        end do
    end subroutine test_complex

    function distance(a, b)
        complex(wp), intent(in) :: a(:, :), b(:, :)
        real(wp) :: distance

        distance = sqrt(sum(real(a - b)**2 + aimag(a - b)**2))
    end function distance

    subroutine test_inverse()
        integer, parameter :: n = 40
        real(wp) :: a(n, n), x(n, n), wide(2 * n, n)
        real(c_double) :: rcond

        call random_number(a)
        a = a + n * identity(n)
        call dense_inverse(a, x, rcond=rcond)
        call bounded(norm2(matmul(a, x) - identity(n)), 10 * n * u, 'inverse')
        ! by the sums of rows, as x lies by columns
        call check(abs(rcond * norm1(transpose(a)) * norm1(transpose(x)) - 1) < 1e-5, 'rcond')
        wide = -1
        call dense_inverse(a(:, n:1:-1), wide(::2, :), refine=.true.)
        call bounded(norm2(wide(2 * n - 1:1:-2, :) - x), 10 * n * u * norm2(x), 'inverse, section')
        call check(all(wide(2::2, :) == -1), 'what is beside an inverse')
    end subroutine test_inverse

    function norm1(a)
        real(wp), intent(in) :: a(:, :)
        real(c_double) :: norm1

        norm1 = maxval(sum(abs(a), 1))
    end function norm1

    function stop_at_once(arg, done) bind(c) result(stop)
        type(c_ptr), value :: arg
        real(c_double), value :: done
        integer(c_int) :: stop
        integer(c_int), pointer :: calls

        call c_f_pointer(arg, calls)
        calls = calls + 1
        stop = merge(1_c_int, 0_c_int, done >= 0)
    end function stop_at_once

    subroutine test_errors()
        integer, parameter :: n = 200
        real(wp) :: d(n), e(n - 1), s(n), L(n, n), R(n, n)
        type(tsvd_options) :: options
        integer(c_int), target :: calls
        integer(int64) :: first, count
        character(200) :: errmsg
        integer :: stat
        type(tsvd_handle) :: handle

        call family('random', d, e)
        errmsg = 'as it was'
        call svdvals(d, e, s, stat=stat, errmsg=errmsg)
        call check(stat == TSVD_OK .and. errmsg == 'as it was', 'success leaves errmsg')
        call svdvals(d, e, s(2:), stat=stat, errmsg=errmsg)
        call check(stat == TSVD_ERR_ARGUMENT .and. errmsg /= 'as it was', 'a bad shape')
        call svdvals(d, e(:5), s, stat=stat, errmsg=errmsg)
        call check(stat == TSVD_ERR_ARGUMENT, 'e of a wrong length')
        call svd(d, e, s, L, L, stat=stat)
        call check(stat == TSVD_ERR_ARGUMENT, 'results that overlap')
        call svd(d, e, s, L, R, tsvd_options(method=99_c_int), stat=stat)
        call check(stat == TSVD_ERR_ARGUMENT, 'no method')
        call svd(d, e, s, L, R, tsvd_options(first=0), stat=stat)
        call check(stat == TSVD_ERR_ARGUMENT, 'a value before the first')
        call select_values(d, e, 2._wp, 1._wp, first, count, stat=stat)
        call check(stat == TSVD_ERR_ARGUMENT, 'an interval backwards')
        options%check => stop_at_once
        calls = 0
        options%check_arg = c_loc(calls)
        call svd(d, e, s, L, R, options, stat=stat)
        call check(stat == TSVD_ERR_INTERRUPTED .and. calls == 1, 'an interruption')
        call handle%open(device=99, stat=stat, errmsg=errmsg)
        call check(stat == TSVD_ERR_NO_DEVICE .and. len_trim(errmsg) > 0, 'no such device')
        d(7) = ieee_value(1._wp, ieee_quiet_nan)
        call svd(d, e, s, L, R, stat=stat, errmsg=errmsg)
        call check(stat == TSVD_ERR_NONFINITE .and. index(errmsg, 'NaN') > 0, 'NaN')
        call svdvals(d, e, s, tsvd_options(check_finite=.false.), stat=stat)
        call check(stat == TSVD_OK .and. all(s /= s), 'NaN that is not checked')
        L = 0
        call dense_inverse(L, R, stat=stat, errmsg=errmsg)
        call check(stat == TSVD_ERR_SINGULAR, 'a singular matrix')
        call dense_svd(L, s, R, R, stat=stat)
        call check(stat == TSVD_ERR_ARGUMENT, 'dense results that overlap')
        call dense_svdvals(L, s(2:), stat=stat)
        call check(stat == TSVD_ERR_ARGUMENT, 'dense, a bad shape')
    end subroutine test_errors

    ! A handle is used again, ends by itself, and none that is closed is used.
    subroutine test_handles()
        real(wp) :: d(3), e(2), s(3), values(3)
        type(tsvd_handle) :: handle, other
        integer :: i, stat

        d = [3, 2, 1]
        e = 1
        call svdvals(d, e, values)
        call svdvals(d, e, s, handle=handle, stat=stat)
        call check(stat == TSVD_ERR_ARGUMENT, 'a handle that is not open')
        other = handle
        do i = 1, 3
            call handle%open(threads=1)
            call svdvals(d, e, s, handle=handle)
            call check(all(s == values), 'a handle')
        end do
        call handle%close()
        call handle%close()
        !$omp parallel do private(s, stat)
        do i = 1, 8
            call svdvals(d, e, s, stat=stat)
            !$omp critical
            call check(stat == TSVD_OK .and. all(s == values), 'calls from many threads')
            !$omp end critical
        end do
        call check(len(tsvd_version()) >= 5, 'the version')
    end subroutine test_handles
end program test_tsvd
