! The SVD of a bidiagonal matrix from Fortran, and a check of it: ones on both diagonals, of which
! the values are known, s_k = 2 cos(k pi / (2 n + 1)).
program main
    use tsvd, only: svd, tsvd_version
    implicit none
    integer, parameter :: n = 300, dp = kind(1d0)
    real(dp) :: d(n), e(n - 1), s(n), L(n, n), R(n, n), known(n), residual, error
    integer :: k

    d = 1
    e = 1
    call svd(d, e, s, L, R) ! stops with the library's words if it fails
    known = [(2 * cos(k * acos(-1._dp) / (2 * n + 1)), k = 1, n)]
    error = norm2(s - known)
    ! L^T B - diag(s) R, where column k of L^T B is the sum of columns k - 1 and k of L^T
    residual = norm2(transpose(L) + eoshift(transpose(L), -1, dim=2) - spread(s, 2, n) * R)
    print '(3a, 2es9.1, a, es9.1)', 'tsvd ', tsvd_version(), ': residual, and error of s:', &
        residual, error, ', at most ', 10 * n * epsilon(1._dp)
    if (.not. max(residual, error) <= 10 * n * epsilon(1._dp)) error stop 1
end program main
