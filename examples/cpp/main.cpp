/*
 * The SVD of bidiagonal matrices from C++: how chains of masses and springs swing.
 *
 * n unit masses lie in a row, each joined to the next by a unit spring and the last one to a wall.
 * If the masses are displaced by x, then the springs are stretched by B x, where B has ones on the
 * diagonal and -1 above it, and x'' = -B^T B x.  So the singular values of B are the frequencies
 * of the chain, 2 cos(k pi / (2 n + 1)), and the rows of R are its modes.  At the end, dense and
 * complex: the Fourier matrix, whose singular values are all equal.
 */
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <limits>
#include <numeric>
#include <vector>

#include <tsvd/tsvd.hpp>

static int failures = 0;

/* Prints a measure beside its bound. */
static void
check(const char *what, double measure, double bound)
{
    const bool good = measure <= bound; // NaN is not

    std::printf("%-45s %.1e, bound %.1e%s\n", what, measure, bound, good ? "" : ": FAILED");
    failures += !good;
}

/* Frobenius norms of B R^T - L diag(s) and of R R^T - I. */
static void
check_modes(const tsvd::result<double> &modes, double bound)
{
    const std::size_t n = modes.n, k = modes.k;
    double residual = 0, orthogonality = 0;

    for (std::size_t j = 0; j < k; j++) {
        const double *mode = &modes.R[j * n];

        for (std::size_t i = 0; i < n; i++) {
            const double stretch = mode[i] - (i + 1 < n ? mode[i + 1] : 0);

            residual = std::hypot(residual, stretch - modes.L[i * k + j] * modes.s[j]);
        }
        for (std::size_t i = 0; i < k; i++) {
            const double product = std::inner_product(mode, mode + n, &modes.R[i * n], 0.0);

            orthogonality = std::hypot(orthogonality, product - (i == j));
        }
    }
    check("residual of the modes", residual, bound);
    check("orthogonality of the modes", orthogonality, bound);
}

int
main()
try {
    constexpr std::size_t n = 200;
    constexpr double bound = 10 * n * std::numeric_limits<double>::epsilon();
    const double pi = std::acos(-1.0);
    const std::vector<double> d(n, 1.0), e(n - 1, -1.0);
    tsvd::handle handle; // the CPU

    // All frequencies and modes; a plan says beforehand what that takes.
    tsvd::options options;
    const tsvd_plan plan = tsvd::make_plan(handle, d, e, options);
    std::printf("tsvd %s, method %s, %.1f MB of results, at most %.1f MB of workspace\n",
                tsvd::version(), tsvd_method_name(plan.method), double(plan.result_bytes) / 1e6,
                double(plan.host_bytes) / 1e6);
    options.progress = [](double done) {
        std::fprintf(stderr, "\r%3.0f %%", 100 * done);
        return true; // go on
    };
    const tsvd::result<double> chain = tsvd::svd(handle, d, e, options);
    std::fprintf(stderr, "\r     \r");
    double norm = 0;
    for (std::size_t k = 0; k < n; k++) {
        norm = std::hypot(norm, chain.s[k] - 2 * std::cos(double(k + 1) * pi / (2 * n + 1)));
    }
    check("error of the frequencies", norm, bound);
    check_modes(chain, bound);

    // The slow modes alone: those of frequencies in (0, 0.1].
    const tsvd::range slow = tsvd::select(handle, d, e, 0, 0.1);
    tsvd::options part;
    part.set_range(slow);
    std::printf("%d modes are slow, the slowest has frequency %.6f\n", int(slow.count),
                tsvd::svdvals(handle, d, e, part).back());
    try {
        check_modes(tsvd::svd(handle, d, e, part), bound);
    } catch (const tsvd::error &error) {
        if (error.status() != TSVD_ERR_LIBRARY) {
            throw;
        }
        std::printf("no slow modes: %s\n  %s\n", error.what(), error.advice());
    }

    // Three chains at once in single precision, with springs of strength 1, 4 and 9: a spring of
    // strength w^2 makes every frequency w times as high.  Results go where the caller wants them.
    std::vector<float> diagonals(3 * n), others(3 * (n - 1)), frequencies(3 * n);
    for (std::size_t m = 0; m < 3; m++) {
        std::fill_n(&diagonals[m * n], n, float(m + 1));
        std::fill_n(&others[m * (n - 1)], n - 1, -float(m + 1));
    }
    tsvd::svdvals(handle, tsvd::on_host(diagonals.data(), 3, n),
                  tsvd::on_host(others.data(), 3, n - 1), frequencies);
    norm = 0;
    for (std::size_t i = 0; i < 3 * n; i++) {
        norm = std::hypot(norm, double(frequencies[i]) - double(i / n + 1) * chain.s[i % n]);
    }
    check("error of three chains in single precision", norm,
          10 * n * std::numeric_limits<float>::epsilon());

    // A dense complex matrix.  On the CPU that needs a BLAS with zgemm, which a library may lack.
    constexpr std::size_t order = 30;
    std::vector<std::complex<double>> fourier(order * order);
    for (std::size_t i = 0; i < fourier.size(); i++) {
        fourier[i] = std::polar(1.0, -2 * pi * double(i / order * (i % order)) / order);
    }
    try {
        const auto svd = tsvd::dense_svd(handle, tsvd::on_host(fourier.data(), order, order));
        double off = 0;
        for (std::size_t i = 0; i < fourier.size(); i++) {
            std::complex<double> rest = fourier[i];
            for (std::size_t k = 0; k < order; k++) {
                rest -= svd.U[i / order * order + k] * svd.S[k] * svd.Vh[k * order + i % order];
            }
            off = std::hypot(off, std::abs(rest));
        }
        check("residual of the Fourier matrix", off,
              10 * order * order * std::numeric_limits<double>::epsilon());
        check("its values from sqrt(n)", std::abs(svd.S[0] - std::sqrt(double(order))),
              10 * order * std::sqrt(double(order)) * std::numeric_limits<double>::epsilon());
    } catch (const tsvd::error &error) {
        if (error.status() != TSVD_ERR_LIBRARY) {
            throw;
        }
        std::printf("no complex matrices: %s\n  %s\n", error.what(), error.advice());
    }
    return failures > 0;
} catch (const tsvd::error &error) {
    std::printf("error: %s\n  %s\n", error.what(), error.advice());
    return 1;
}
