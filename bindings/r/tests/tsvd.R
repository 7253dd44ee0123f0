# The package against base R.

library(tsvd)

u <- .Machine$double.eps
passed <- 0
check <- function(...) {
    stopifnot(...)
    passed <<- passed + 1
}
size <- function(x) sqrt(sum(Mod(x)^2))
h <- function(x) Conj(t(x))

# Residual, orthogonality and order of a decomposition, and its values beside those of base R.
check_svd <- function(x, s) {
    k <- length(s$d)
    bound <- 10 * max(dim(x), 1) * u
    scaled <- s$u * rep(s$d, each = nrow(s$u))
    check(size(x - scaled %*% s$vt) <= bound * max(size(x), 1e-300))
    check(size(h(s$u) %*% s$u - diag(k)) <= bound)
    check(size(s$vt %*% h(s$vt) - diag(k)) <= bound)
    check(s$d >= 0, diff(s$d) <= 0)
    if (k > 0) { # base R refuses none
        check(size(s$d - svd(x, 0, 0)$d) <= bound * max(size(x), 1e-300))
    }
}

bidiagonal <- function(d, e, lower = FALSE) {
    n <- length(d)
    b <- matrix(0, n, n + (length(e) == n))
    b[cbind(seq_len(n), seq_len(n))] <- d
    b[cbind(seq_along(e), seq_along(e) + 1)] <- e
    if (lower) t(b) else b
}

set.seed(1)
n <- 60
families <- list(
    random = list(rnorm(n), rnorm(n - 1)),
    graded = list(10^-seq(0, 20, length.out = n), 10^-seq(0, 20, length.out = n)[-1]),
    clustered = list(1 + u * runif(n), u * runif(n - 1)),
    zeros = list(rep(c(1, 0, 2), length.out = n), rep(c(0, 1), length.out = n - 1)),
    constant = list(rep(1, n), rep(1, n - 1)),
    null = list(rep(0, n), rep(0, n - 1)),
    integer = list(3:1, 1:2),
    one = list(-2, numeric()),
    wide = list(rnorm(n), rnorm(n))
)
for (family in families) {
    d <- family[[1]]
    e <- family[[2]]
    for (lower in c(FALSE, TRUE)) {
        check_svd(bidiagonal(d, e, lower), tsvd_svd(d, e, lower = lower))
        for (method in c("dc", "qr", "givens")) {
            check_svd(bidiagonal(d, e, lower), tsvd_svd(d, e, method = method, lower = lower))
        }
    }
    values <- tsvd_svd(d, e, vectors = FALSE)
    check(identical(names(values), "d"))
    check(size(values$d - tsvd_svd(d, e)$d) <= 8 * u * size(values$d))
}
none <- tsvd_svd(numeric(), numeric())
check(length(none$d) == 0, dim(none$u) == c(0, 0), dim(none$vt) == c(0, 0))

# A part, and options.
d <- rnorm(n)
e <- rnorm(n - 1)
s <- tsvd_svd(d, e)
part <- tsvd_svd(d, e, first = 3, count = 5)
check(dim(part$u) == c(n, 5), dim(part$vt) == c(5, n))
check(size(part$d - s$d[3:7]) <= 8 * u * s$d[1])
check(size(part$u - s$u[, 3:7]) <= 1e-10, size(part$vt - s$vt[3:7, ]) <= 1e-10)
check(identical(tsvd_svd(d, e, threads = 1)$d, s$d))

# Dense matrices, real and complex; inputs stay as they are.
for (shape in list(c(30, 30), c(50, 20), c(7, 40), c(1, 9), c(0, 4))) {
    x <- matrix(rnorm(prod(shape)), shape[1])
    for (y in list(x, x + 1i * rnorm(prod(shape)))) {
        before <- y + 0
        check_svd(y, tsvd_dense_svd(y))
        check(identical(y, before))
        check(identical(names(tsvd_dense_svd(y, vectors = FALSE)), "d"))
    }
}
check_svd(matrix(1:6, 2), tsvd_dense_svd(matrix(1:6, 2)))
check_svd(as.matrix(cars), tsvd_dense_svd(cars, method = "jacobi"))
x <- matrix(rnorm(400), 20) + diag(20)
for (y in list(x, x + 1i * t(x))) {
    check(size(y %*% tsvd_dense_inverse(y) - diag(20)) <= 1e-10)
    check(size(tsvd_dense_inverse(y, refine = TRUE) - solve(y)) <= 1e-10 * size(solve(y)))
}

# Errors.
fails <- function(expression, class) {
    condition <- tryCatch(expression, error = function(condition) condition)
    check(inherits(condition, class), nchar(conditionMessage(condition)) > 0)
}
fails(tsvd_svd(c(1, NA), 1), c("tsvd_nonfinite", "tsvd_error"))
fails(tsvd_svd(c(1, Inf), 1), "tsvd_nonfinite")
fails(tsvd_dense_svd(matrix(c(1, NA), 1)), "tsvd_nonfinite")
fails(tsvd_dense_svd(matrix(NA_complex_, 2, 2)), "tsvd_nonfinite")
fails(tsvd_svd(1:5, 1:2), "tsvd_argument")
fails(tsvd_svd(1:5, 1:4, first = 9, count = 3), "tsvd_argument")
fails(tsvd_svd(1:5, 1:4, first = 0), "tsvd_argument")
fails(tsvd_svd(1:5, 1:4, method = "bisect"), "tsvd_argument")
fails(tsvd_svd(1:5, 1:4, device = 99), "tsvd_no_device")
fails(tsvd_dense_inverse(matrix(0, 2, 2)), "tsvd_singular")
fails(tsvd_dense_inverse(matrix(0, 2, 3)), "tsvd_argument")
fails(tsvd_svd(1:5, 1:4, method = "none"), "simpleError")
fails(tsvd_svd(1:5, 1:4, first = NA), "simpleError")
fails(tsvd_svd(1:5, 1:4, count = 1e20), "simpleError")
fails(tsvd_dense_svd(letters), "simpleError")

# Children of the process may call.
d <- rnorm(200)
here <- tsvd_svd(d, d[-1])
check(vapply(parallel::mclapply(1:2, function(i) tsvd_svd(d, d[-1]), mc.cores = 2),
             identical, TRUE, here))

# A limit of time comes as an interrupt does; R writes that it was reached.
d <- rnorm(3000)
local({
    setTimeLimit(elapsed = 0.2, transient = TRUE)
    fails(tsvd_svd(d, d[-1], method = "givens", threads = 1), "tsvd_interrupted")
})

# Results are protected from the collector.
invisible(gctorture2(20))
for (i in 1:5) {
    s <- tsvd_svd(c(3, 2, 1), c(1, 1))
    tsvd_dense_svd(matrix(1:4, 2))
    try(tsvd_dense_inverse(matrix(0, 2, 2)), silent = TRUE)
}
invisible(gctorture2(0))
check_svd(bidiagonal(c(3, 2, 1), c(1, 1)), s)

cat("R:", passed, "passed, 0 failed\n")
