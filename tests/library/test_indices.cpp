/*
 * tsvd.hpp with -Wsign-conversion: sizes and indices of int, std::size_t and std::int64_t.
 */
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <tsvd/tsvd.hpp>

namespace
{

int failures;

void
check(bool good, const char *what)
{
    if (!good) {
        std::printf("not %s\n", what);
        failures++;
    }
}
#define CHECK(truth) check((truth), #truth)

/* Two matrices of order 3, of which every matrix of size one is the first value. */
template <class Index>
void
test_bidiagonal(tsvd::handle &handle)
{
    const Index matrices = 2, n = 3, one = 1;
    const std::vector<double> d = {1, 2, 3, 4, 5, 6}, e = {0, 0, 0, 0};
    const auto d_array = tsvd::on_host(d.data(), matrices, n);
    const auto e_array = tsvd::on_host(e.data(), matrices, n - one);
    const auto svd = tsvd::svd(handle, d_array, e_array);
    tsvd::options options;

    for (Index m = 0; m < matrices; m++) {
        for (Index j = 0; j < n; j++) {
            CHECK(svd.s_at(j, m) == d[static_cast<std::size_t>(m * n + n - one - j)]);
            for (Index i = 0; i < n; i++) {
                const double right = i == n - one - j ? 1 : 0;

                CHECK(svd.L_at(i, j, m) == right && svd.R_at(j, i, m) == right);
            }
        }
    }
    CHECK(svd.s_at(0) == 3 && svd.L_at(2, 0) == 1 && svd.R_at(0, 2) == 1);

    options.set_range(one, one);
    CHECK(tsvd::svdvals(handle, d_array, e_array, options) == std::vector<double>({2, 5}));
    options.set_range(tsvd::select(handle, tsvd::on_host(d.data(), n),
                                   tsvd::on_host(e.data(), n - one), 0.5, 1.5));
    CHECK(options.first == 2 && options.count == 1);
    CHECK(tsvd::make_plan<float>(handle, n).n == 3);
    CHECK(d_array.strided(sizeof(double) * 3, sizeof(double)).get().strides[0] == 24);
    CHECK(d_array.strided(-24, 8).get().strides[0] == -24);
}

template <class Index>
void
test_dense(tsvd::handle &handle)
{
    using number = std::complex<double>;
    const Index m = 2, n = 1, p = 2;
    const std::vector<number> a = {3, 0}, square = {2, 0, 0, 4};

    try {
        const auto svd = tsvd::dense_svd(handle, tsvd::on_host(a.data(), m, n));
        const auto inverse = tsvd::dense_inverse(handle, tsvd::on_host(square.data(), p, p));

        CHECK(svd.S_at(Index(0)) == 3 && svd.U_at(Index(0), Index(0)) == 1. &&
              svd.U_at(Index(1), Index(0)) == 0. && svd.Vh_at(Index(0), Index(0)) == 1.);
        CHECK(inverse.X_at(Index(0), Index(0)) == .5 && inverse.X_at(Index(1), Index(1)) == .25 &&
              inverse.X_at(Index(0), Index(1)) == 0.);
    } catch (const tsvd::error &error) { // the library may have no BLAS
        CHECK(error.status() == TSVD_ERR_LIBRARY);
    }
}

template <class Index>
void
test_all(tsvd::handle &handle)
{
    test_bidiagonal<Index>(handle);
    test_dense<Index>(handle);
}

} // namespace

int
main()
{
    tsvd::handle handle;

    test_all<int>(handle);
    test_all<std::size_t>(handle);
    test_all<std::int64_t>(handle);
    return failures > 0;
}
