# Decompositions and inverses by the C library.  Arguments are checked there; its errors are
# conditions of the classes tsvd_argument, tsvd_nonfinite, ... and tsvd_error.

methods <- c("auto", "dc", "qr", "givens", "bisect", "twisted", "jacobi")

# The settings of a call, in the order that src/tsvd.c reads.
settings <- function(lower = FALSE, first = 1, count = -1, eps = -1, threads = 0, device = -1) {
    numbers <- as.double(c(lower, first, count, eps, threads, device))
    if (length(numbers) != 6 || anyNA(numbers)) {
        stop("an option is not one number")
    }
    if (any(abs(numbers[-4]) > .Machine$integer.max)) { # all but eps become integers
        stop("an option is out of range")
    }
    numbers
}

# The result of a call, or its error as a condition.
checked <- function(result, call = sys.call(-1)) {
    if (is.character(result)) {
        stop(structure(
            class = c(result[1], "tsvd_error", "error", "condition"),
            list(message = result[2], call = call)
        ))
    }
    result
}

# A matrix of numbers, or an error.
as_numbers <- function(x) {
    x <- as.matrix(x)
    if (!is.numeric(x) && !is.complex(x) && !is.logical(x)) {
        stop("x holds no numbers")
    }
    if (!is.complex(x)) {
        storage.mode(x) <- "double"
    }
    x
}

tsvd_svd <- function(d, e, vectors = TRUE, method = methods, ...) {
    checked(.Call(
        C_bidiagonal, as.double(d), as.double(e), as.logical(vectors), match.arg(method),
        settings(...)
    ))
}

tsvd_dense_svd <- function(x, vectors = TRUE, method = methods, ...) {
    checked(.Call(
        C_dense, as_numbers(x), as.logical(vectors), match.arg(method), settings(...)
    ))
}

tsvd_dense_inverse <- function(x, refine = FALSE, ...) {
    checked(.Call(C_inverse, as_numbers(x), as.logical(refine), settings(...)))
}
