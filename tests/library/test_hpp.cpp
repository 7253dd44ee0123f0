/*
 * tsvd.hpp: what its arrays take, what it throws, and results of each form of call.
 */
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

#include <tsvd/tsvd.hpp>

namespace
{

using doubles = std::vector<double>;
using floats = std::vector<float>;

/* With its own text, which C++14 wants. */
#define STATIC_ASSERT(...) static_assert((__VA_ARGS__), #__VA_ARGS__)

/* Input takes const and non-const containers, output those that can be written; of its own type. */
template <class T, class From>
constexpr bool takes = std::is_convertible<From, tsvd::array<T>>::value;
STATIC_ASSERT(takes<const double, doubles &> &&takes<const double, const doubles &>);
STATIC_ASSERT(takes<const double, doubles>);
STATIC_ASSERT(takes<double, doubles &> && !takes<double, const doubles &> &&
              !takes<double, doubles>);
STATIC_ASSERT(takes<const double, const std::array<double, 3> &> &&takes<float, float (&)[3]>);
STATIC_ASSERT(takes<const double, tsvd::array<double>> &&
              !takes<double, tsvd::array<const double>>);
STATIC_ASSERT(!takes<const double, floats &> && !takes<const float, doubles &>);
STATIC_ASSERT(!takes<const float, tsvd::array<double>> && !takes<const double, double *>);
#if __cplusplus >= 202002L
STATIC_ASSERT(takes<const double, std::span<const double>> &&takes<double, std::span<double>>);
STATIC_ASSERT(!takes<double, std::span<const double>> && takes<double, std::span<double, 3> &>);
#endif

/* What std::mdspan offers, with std::layout_left: matrices by columns. */
template <class T> struct columns_view {
    T *data;
    std::size_t rows, columns;

    static constexpr std::size_t rank()
    {
        return 2;
    }
    T *data_handle() const
    {
        return data;
    }
    std::size_t extent(std::size_t i) const
    {
        return i == 0 ? rows : columns;
    }
    std::size_t stride(std::size_t i) const
    {
        return i == 0 ? 1 : rows;
    }
};
STATIC_ASSERT(takes<double, columns_view<double>> &&takes<const double, columns_view<double>>);
STATIC_ASSERT(takes<const float, columns_view<const float>> &&
              !takes<float, columns_view<const float>> && !takes<double, columns_view<float>>);

/* A handle has one owner. */
STATIC_ASSERT(std::is_nothrow_move_constructible<tsvd::handle>::value);
STATIC_ASSERT(std::is_nothrow_move_assignable<tsvd::handle>::value);
STATIC_ASSERT(!std::is_copy_constructible<tsvd::handle>::value);

STATIC_ASSERT(std::is_base_of<std::runtime_error, tsvd::error>::value);
STATIC_ASSERT(std::is_base_of<tsvd::error, tsvd::memory_error>::value);

int failures;

void
check(bool good, const char *what, int line)
{
    if (!good) {
        std::printf("%s:%d: not %s\n", __FILE__, line, what);
        failures++;
    }
}
#define CHECK(truth) check((truth), #truth, __LINE__)

/* The error that a call throws; one with status TSVD_OK if none. */
template <class Call>
tsvd_error
caught(Call call)
{
    tsvd_error e = {};

    try {
        call();
    } catch (const tsvd::error &thrown) {
        e.status = thrown.status();
        e.matrix = thrown.matrix();
        e.sweeps = thrown.sweeps();
        e.wanted = thrown.wanted();
        e.available = thrown.available();
        std::snprintf(e.text, sizeof e.text, "%s", thrown.what());
        std::snprintf(e.advice, sizeof e.advice, "%s", thrown.advice());
    }
    return e;
}

/* Whether matrix m of a result is the SVD of diag(d) + diag(e, 1), to some units of its size. */
template <class real>
bool
decomposes(const tsvd::result<real> &r, std::int64_t m, const real *d, const real *e)
{
    const std::int64_t n = r.n, k = r.k;
    const real *L = &r.L[static_cast<std::size_t>(m * n * k)];
    const real *R = &r.R[static_cast<std::size_t>(m * n * k)];
    const real *s = &r.s[static_cast<std::size_t>(m * k)];
    double residual = 0, orthogonality = 0;

    for (std::int64_t i = 0; i < n; i++) {
        for (std::int64_t j = 0; j < n; j++) {
            double b = i == j ? d[i] : i + 1 == j ? e[i] : 0, left = i == j, right = i == j;

            for (std::int64_t p = 0; p < k; p++) {
                b -= double(L[i * k + p]) * double(s[p]) * double(R[p * n + j]);
                left -= double(L[p * k + i]) * double(L[p * k + j]);
                right -= double(R[i * n + p]) * double(R[j * n + p]);
            }
            residual = std::hypot(residual, b);
            orthogonality = std::hypot(std::hypot(orthogonality, left), right);
        }
    }
    return residual <= 50 * std::numeric_limits<real>::epsilon() * double(s[0]) &&
           orthogonality <= 50 * std::numeric_limits<real>::epsilon();
}

template <class real>
void
test_forms(tsvd::handle &handle)
{
    const real d[] = {4, 3, 2, 1, 5, 6, 7, 8}, e[] = {1, 1, 1, 2, 2, 2};
    const auto d1 = tsvd::on_host(d, 4), e1 = tsvd::on_host(e, 3);
    const auto d2 = tsvd::on_host(d, 2, 4), e2 = tsvd::on_host(e, 2, 3);
    const tsvd::result<real> one = tsvd::svd(handle, d1, e1), two = tsvd::svd(handle, d2, e2);

    CHECK(one.n == 4 && one.k == 4 && one.matrices == 1 && two.matrices == 2);
    CHECK(one.L.size() == 16 && one.s.size() == 4 && one.R.size() == 16 && two.L.size() == 32);
    CHECK(decomposes(one, 0, d, e) && decomposes(two, 0, d, e) && decomposes(two, 1, d + 4, e + 3));

    // Containers, and values alone.
    const std::vector<real> d_vector(d, d + 4);
    const std::array<real, 3> e_array = {1, 1, 1};
    CHECK(tsvd::svd(handle, d_vector, e_array).s == one.s);
    CHECK(tsvd::svdvals(handle, d2, e2).size() == 8);

    // Into arrays of the caller's, of their shape or flat; the flat ones are the same numbers.
    std::vector<real> L(32), s(8), R(32);
    tsvd_info info = tsvd::svd(handle, d2, e2, L, s, R);
    CHECK(L == two.L && s == two.s && R == two.R);
    CHECK(info.method != TSVD_METHOD_AUTO);
    real L_matrix[16], s_matrix[4], R_matrix[16];
    tsvd::svd(handle, d1, e1, tsvd::on_host(L_matrix, 4, 4), s_matrix, R_matrix);
    CHECK(std::memcmp(L_matrix, one.L.data(), sizeof L_matrix) == 0);
    CHECK(std::memcmp(R_matrix, one.R.data(), sizeof R_matrix) == 0);
    info = tsvd::svdvals(handle, d1, e1, s_matrix);
    CHECK(std::abs(s_matrix[0] - one.s[0]) <=
          4 * std::numeric_limits<real>::epsilon() * s_matrix[0]);

    // One e for both matrices, by broadcasting and by a stride of 0; d backwards.
    const int bytes = sizeof(real);
    const std::vector<real> shared = tsvd::svdvals(handle, d2, e1);
    CHECK(tsvd::svdvals(handle, d2, e2.strided(0, bytes)) == shared);
    CHECK(tsvd::svdvals(handle, tsvd::on_host(d, 2, 1, 4), e1).size() == 8);
    const real reversed[] = {1, 2, 3, 4};
    CHECK(tsvd::svdvals(handle, tsvd::on_host(d + 3, 4).strided(-bytes), e1) ==
          tsvd::svdvals(handle, reversed, e1));

    // A column more than rows, and a row more than columns.
    const real diagonal[] = {3, 2}, off[] = {1, 1};
    tsvd::options below;
    below.lower = 1;
    const tsvd::result<real> wide = tsvd::svd(handle, diagonal, off);
    const tsvd::result<real> tall = tsvd::svd(handle, diagonal, off, below);
    CHECK(wide.rows == 2 && wide.columns == 3 && wide.L.size() == 4 && wide.R.size() == 6);
    CHECK(tall.rows == 3 && tall.columns == 2 && tall.L.size() == 6 && tall.R.size() == 4);
    CHECK(wide.s == tall.s && wide.s == tsvd::svdvals(handle, diagonal, off));
    CHECK(std::abs(wide.s[0] * wide.s[0] + wide.s[1] * wide.s[1] - 15) <=
          100 * std::numeric_limits<real>::epsilon());

    // A part of the values.
    tsvd::options options;
    options.first = 1;
    options.count = 2;
    const tsvd::result<real> part = tsvd::svd(handle, d2, e2, options);
    CHECK(part.k == 2 && part.L.size() == 16 && part.s.size() == 4 && part.R.size() == 16);
    s.resize(4);
    tsvd::svdvals(handle, d2, e2, s, options);
    CHECK(std::abs(s[0] - two.s[1]) <= 4 * std::numeric_limits<real>::epsilon() * s[0]);
    const tsvd::range range = tsvd::select(handle, d1, e1, (one.s[1] + one.s[2]) / 2, 100);
    CHECK(range.first == 0 && range.count == 2);
    CHECK(tsvd::select(handle, d1, e1, 50, 100).count == 0);
    options.count = 0;
    CHECK(tsvd::svd(handle, d1, e1, options).L.empty());

    // Orders 1 and 0.
    const std::vector<real> none, single = {-3};
    CHECK(tsvd::svd(handle, single, none).s == std::vector<real>{3});
    CHECK(tsvd::svd(handle, none, none).s.empty());
    CHECK(tsvd::make_plan<real>(handle, 0).count == 0);

    // Plans.
    const tsvd_plan plan = tsvd::make_plan(handle, d2, e2);
    CHECK(plan.n == 4 && plan.count == 4 && plan.matrices == 2);
    CHECK(plan.result_bytes == 72 * sizeof(real));
    CHECK(tsvd::make_plan<real>(handle, 4, {}, false).result_bytes == 4 * sizeof(real));
    CHECK(tsvd::make_plan<real>(handle, 4).result_bytes == 36 * sizeof(real));
}

void
test_errors(tsvd::handle &handle)
{
    doubles d = {1, 2, 3}, e = {1, 1}, L(9), s(3), R(9);
    tsvd::options options;
    tsvd_error error;

    error = caught([&] { tsvd::svd(handle, d, L); });
    CHECK(error.status == TSVD_ERR_ARGUMENT && error.matrix == -1 && error.text[0] != '\0');
    R.resize(8);
    error = caught([&] { tsvd::svd(handle, d, e, L, s, R); });
    CHECK(error.status == TSVD_ERR_ARGUMENT);
    CHECK(std::string(error.text) == "R has 8 entries, and the result has 9");
    s.resize(2);
    CHECK(caught([&] { tsvd::svdvals(handle, d, e, s); }).status == TSVD_ERR_ARGUMENT);
    CHECK(caught([&] { tsvd::on_host(d.data(), 3).strided(8, 8); }).status == TSVD_ERR_ARGUMENT);
    CHECK(caught([&] { tsvd::select(handle, d, e, 1, 1); }).status == TSVD_ERR_ARGUMENT);
    CHECK(caught([&] { handle.set_threads(-1); }).status == TSVD_ERR_ARGUMENT);
    options.method = TSVD_METHOD_QR; // has no vectors of a part
    options.count = 2;
    error = caught([&] { tsvd::svd(handle, d, e, options); });
    CHECK(error.status == TSVD_ERR_ARGUMENT && error.advice[0] != '\0');
    options.first = 5;
    options.count = -1;
    error = caught([&] { tsvd::svd(handle, d, e, L, s, R, options); });
    CHECK(error.status == TSVD_ERR_ARGUMENT && std::strstr(error.text, "entries") == nullptr);

    doubles batch(6, 1.0);
    batch[4] = std::nan("");
    error = caught([&] { tsvd::svdvals(handle, tsvd::on_host(batch.data(), 2, 3), e); });
    CHECK(error.status == TSVD_ERR_NONFINITE && error.matrix == 1);

    // 2^62 bytes of results: no machine has them.
    double zero = 0;
    const std::int64_t n = std::int64_t(1) << 29;
    const auto large = tsvd::on_host(&zero, n).strided(0),
               off = tsvd::on_host(&zero, n - 1).strided(0);
    bool was_memory = false;
    try {
        tsvd::svd(handle, large, off);
    } catch (const tsvd::memory_error &thrown) {
        was_memory = thrown.status() == TSVD_ERR_MEMORY && thrown.wanted() > std::uint64_t(1) << 60;
    }
    CHECK(was_memory);

    if (!tsvd_cuda_compiled()) {
        CHECK(caught([] { tsvd::handle none(0); }).status == TSVD_ERR_NO_DEVICE);
    }
}

/* A product for set_blas(): C = alpha A B + beta C, by columns. */
template <class real>
void
multiply(const char *transa, const char *transb, const std::int32_t *m, const std::int32_t *n,
         const std::int32_t *k, const real *alpha, const real *a, const std::int32_t *lda,
         const real *b, const std::int32_t *ldb, const real *beta, real *c, const std::int32_t *ldc)
{
    for (std::int64_t i = 0; i < *m; i++) {
        for (std::int64_t j = 0; j < *n; j++) {
            real sum = 0, &to = c[i + j * *ldc];

            for (std::int64_t l = 0; l < *k; l++) {
                sum += a[*transa == 'N' ? i + l * *lda : l + i * *lda] *
                       b[*transb == 'N' ? l + j * *ldb : j + l * *ldb];
            }
            to = *alpha * sum + (*beta == 0 ? 0 : *beta * to);
        }
    }
}

/* The same for complex numbers: "C" stands for the conjugate transpose. */
template <class real>
void
multiply_complex(const char *transa, const char *transb, const std::int32_t *m,
                 const std::int32_t *n, const std::int32_t *k, const real *alpha, const real *a,
                 const std::int32_t *lda, const real *b, const std::int32_t *ldb, const real *beta,
                 real *c, const std::int32_t *ldc)
{
    using number = std::complex<real>;
    const auto at = [](const real *x, std::int64_t i) { return number(x[2 * i], x[2 * i + 1]); };

    for (std::int64_t i = 0; i < *m; i++) {
        for (std::int64_t j = 0; j < *n; j++) {
            real *const to = c + 2 * (i + j * *ldc);
            number sum = 0;

            for (std::int64_t l = 0; l < *k; l++) {
                sum += (*transa == 'N' ? at(a, i + l * *lda) : std::conj(at(a, l + i * *lda))) *
                       (*transb == 'N' ? at(b, l + j * *ldb) : std::conj(at(b, j + l * *ldb)));
            }
            sum = *alpha * sum + (*beta == 0 ? number() : *beta * number(to[0], to[1]));
            to[0] = sum.real();
            to[1] = sum.imag();
        }
    }
}

/* Whether matrix i of a result is the SVD of the m x n matrix a, to some units of its size. */
template <class real>
bool
decomposes(const tsvd::dense_result<real> &r, std::int64_t i, const real *a)
{
    const real *U = &r.U[static_cast<std::size_t>(i * r.m * r.k)];
    const real *Vh = &r.Vh[static_cast<std::size_t>(i * r.k * r.n)];
    const real *S = &r.S[static_cast<std::size_t>(i * r.k)];
    double residual = 0;

    for (std::int64_t row = 0; row < r.m; row++) {
        for (std::int64_t column = 0; column < r.n; column++) {
            double x = a[row * r.n + column];

            for (std::int64_t j = 0; j < r.k; j++) {
                x -= double(U[row * r.k + j]) * double(S[j]) * double(Vh[j * r.n + column]);
            }
            residual = std::hypot(residual, x);
        }
    }
    return residual <= 50 * std::numeric_limits<real>::epsilon() * double(S[0]);
}

template <class real>
void
test_complex(tsvd::handle &handle)
{
    using number = std::complex<real>;
    const std::vector<number> a = {{4, 1}, {0, 2}, {3, 1}, {1, -1}, {5, 2}, {2, 0}, {1, 7}, {1, 3}};
    const auto tall = tsvd::on_host(a.data(), 4, 2), square = tsvd::on_host(a.data(), 2, 2);
    const tsvd::dense_result<number> r = tsvd::dense_svd(handle, tall);
    const real bound = 50 * std::numeric_limits<real>::epsilon() * r.S[0];
    const std::vector<real> S = tsvd::dense_svdvals(handle, tall);
    std::vector<number> U(8), Vh(4);
    std::vector<real> into(2), d(2), e(1);
    real rest = 0;

    for (std::size_t i = 0; i < 4; i++) {
        for (std::size_t j = 0; j < 2; j++) {
            const number of = r.U[2 * i] * r.S[0] * r.Vh[j] + r.U[2 * i + 1] * r.S[1] * r.Vh[2 + j];

            rest = std::max(rest, std::abs(of - a[2 * i + j]));
        }
    }
    CHECK(rest <= bound && std::abs(S[1] - r.S[1]) <= bound);
    tsvd::dense_svd(handle, tall, U, into, Vh);
    CHECK(U == r.U && into == r.S && Vh == r.Vh);

    const tsvd::reduction<number> reduction(handle, tall);
    reduction.entries(d, e);
    CHECK(std::abs(std::hypot(d[0], std::hypot(d[1], e[0])) - std::hypot(S[0], S[1])) <= bound);
    tsvd::options reducing; // a small matrix is decomposed directly otherwise
    reducing.dense_stages = 1;
    CHECK(reduction.svd().U == tsvd::dense_svd(handle, tall, reducing).U);
    CHECK(reduction.svdvals() == tsvd::dense_svdvals(handle, tall, reducing));

    const tsvd::inverse_result<number> inverse = tsvd::dense_inverse(handle, square);
    CHECK(std::abs(a[0] * inverse.X[0] + a[1] * inverse.X[2] - number(1)) <= bound);
    std::vector<number> X(4);
    tsvd::dense_inverse(handle, square, X);
    CHECK(X == inverse.X && tsvd::inverse_plan(handle, square).n == 2);
}

template <class real>
void
test_dense(tsvd::handle &handle)
{
    const real a[] = {4, 1, 0, 2, 3, 1, 1, 1, 5, 2, 2, 0, 1, 7, 1, 3, 3, 1, 6, 2, 1, 1, 0, 8};
    const auto a4 = tsvd::on_host(a, 4, 3), a2 = tsvd::on_host(a, 2, 4, 3);
    const tsvd::dense_result<real> one = tsvd::dense_svd(handle, a4);
    const tsvd::dense_result<real> two = tsvd::dense_svd(handle, a2);

    CHECK(one.m == 4 && one.n == 3 && one.k == 3 && one.matrices == 1 && two.matrices == 2);
    CHECK(one.U.size() == 12 && one.S.size() == 3 && one.Vh.size() == 9 && two.U.size() == 24);
    CHECK(decomposes(one, 0, a) && decomposes(two, 0, a) && decomposes(two, 1, a + 12));
    CHECK(decomposes(tsvd::dense_svd(handle, tsvd::on_host(a, 3, 4)), 0, a));
    CHECK(tsvd::dense_svdvals(handle, a2).size() == 6);

    // Into arrays of the caller's, flat or of their shape, and with all columns and rows.
    std::vector<real> U(12), S(3), Vh(9), whole(16);
    tsvd::dense_svd(handle, a4, U, S, Vh);
    CHECK(U == one.U && S == one.S && Vh == one.Vh);
    tsvd::dense_svd(handle, a4, tsvd::on_host(whole.data(), 4, 4), S, Vh);
    CHECK(whole[0] == one.U[0] && whole[4] == one.U[3] && S == one.S);
    CHECK(caught([&] { tsvd::dense_svd(handle, a4, whole, S, Vh); }).status == TSVD_ERR_ARGUMENT);

    // Parts, and what is wrong.
    tsvd::options options;
    options.first = 1;
    options.count = 1;
    const tsvd::dense_result<real> part = tsvd::dense_svd(handle, a4, options);
    CHECK(part.k == 1 && part.U.size() == 4 && part.S.size() == 1 && part.Vh.size() == 3);
    CHECK(std::abs(part.S[0] - one.S[1]) <= 50 * std::numeric_limits<real>::epsilon() * one.S[0]);
    options.count = 7;
    CHECK(caught([&] { tsvd::dense_svd(handle, a4, options); }).status == TSVD_ERR_ARGUMENT);
    CHECK(caught([&] { tsvd::dense_svd(handle, U); }).status == TSVD_ERR_ARGUMENT);

    // By way of the bidiagonal form.
    tsvd::reduction<real> form(handle, a4), empty(std::move(form));
    std::swap(form, empty);
    std::vector<real> d(3), e(2), x(one.U), y;
    form.entries(d, e);
    tsvd::options reducing; // a small matrix is decomposed directly otherwise
    reducing.dense_stages = 1;
    const tsvd::dense_result<real> reduced = tsvd::dense_svd(handle, a4, reducing);
    CHECK(form.svd().S == reduced.S && form.svd().U == reduced.U && form.svdvals().size() == 3);
    CHECK(decomposes(form.svd(), 0, a));
    const std::vector<real> of_b = tsvd::svdvals(handle, d, e);
    CHECK(std::abs(of_b[2] - one.S[2]) <= 50 * std::numeric_limits<real>::epsilon() * one.S[0]);
    form.apply(TSVD_LEFT, true, tsvd::on_host(x.data(), 4, 3));
    y = x;
    form.apply(TSVD_LEFT, false, tsvd::on_host(y.data(), 4, 3));
    CHECK(x != one.U && std::abs(y[5] - one.U[5]) <= 50 * std::numeric_limits<real>::epsilon());
    const double middle = 0.5 * (double(one.S[0]) + double(one.S[1]));
    const tsvd::range above = form.select(middle, std::numeric_limits<double>::infinity());
    CHECK(above.first == 0 && above.count == 1);
    form.svd(U, S, Vh);
    CHECK(U == reduced.U && S == reduced.S && Vh == reduced.Vh);
    const std::vector<unsigned char> state = form.save();
    CHECK(tsvd::reduction<real>(handle, a4, state).svd().U == reduced.U);
    CHECK(caught([&] {
              tsvd::reduction<real>(handle, a4, std::vector<unsigned char>(state.size()));
          }).status == TSVD_ERR_ARGUMENT);
}

/* The largest entry of A X - I, of order n. */
template <class real>
double
residual(std::int64_t n, const real *a, const real *x)
{
    double largest = 0;

    for (std::int64_t i = 0; i < n * n; i++) {
        double sum = i % (n + 1) == 0 ? -1 : 0;

        for (std::int64_t k = 0; k < n; k++) {
            sum += double(a[i / n * n + k]) * double(x[k * n + i % n]);
        }
        largest = std::fmax(largest, std::abs(sum));
    }
    return largest;
}

template <class real>
void
test_inverse(tsvd::handle &handle)
{
    real a[] = {4, 1, 0, 1, 3, 1, 0, 1, 5, 6, 2, 1, 1, 7, 2, 3, 1, 9};
    const double bound = 20 * std::numeric_limits<real>::epsilon();
    const auto a1 = tsvd::on_host(a, 3, 3), a2 = tsvd::on_host(a, 2, 3, 3);
    const tsvd::inverse_result<real> one = tsvd::dense_inverse(handle, a1);
    const tsvd::inverse_result<real> two = tsvd::dense_inverse(handle, a2);

    CHECK(one.n == 3 && one.matrices == 1 && two.matrices == 2);
    CHECK(one.X.size() == 9 && two.X.size() == 18);
    CHECK(residual(3, a, one.X.data()) <= bound && residual(3, a + 9, &two.X[9]) <= bound);
    CHECK(two.info.matrix >= 0 && two.info.rcond > 0 && two.info.rcond < 1);

    // Into arrays of the caller's, flat or of their shape; of input by columns, so X transposed.
    std::vector<real> X(18), turned(9);
    const tsvd_inverse_info info = tsvd::dense_inverse(handle, a2, X);
    CHECK(X == two.X && info.rcond == two.info.rcond);
    const int bytes = sizeof(real);
    tsvd::dense_inverse(handle, a1.strided(bytes, 3 * bytes), tsvd::on_host(turned.data(), 3, 3));
    CHECK(std::abs(turned[1] - one.X[3]) <= bound && std::abs(turned[3] - one.X[1]) <= bound);
    tsvd::dense_inverse(handle, a1, columns_view<real>{turned.data(), 3, 3});
    CHECK(std::abs(turned[1] - one.X[3]) <= bound && std::abs(turned[3] - one.X[1]) <= bound);

    // With a step of Newton's iteration, which takes memory of its own.
    tsvd::options options;
    CHECK(residual(3, a, tsvd::dense_inverse(handle, a1, options, true).X.data()) <= bound);
    tsvd::dense_inverse(handle, a2, X, options, true);
    CHECK(residual(3, a + 9, &X[9]) <= bound);
    const tsvd_plan plan = tsvd::inverse_plan(handle, a2);
    CHECK(plan.n == 3 && plan.matrices == 2 && plan.result_bytes == 18 * sizeof(real));
    const std::vector<real> larger(20 * 20); // small ones have the workspace of many matrices
    const auto a20 = tsvd::on_host(larger.data(), 20, 20);
    CHECK(tsvd::inverse_plan(handle, a20, options, true).host_bytes >
          tsvd::inverse_plan(handle, a20).host_bytes);

    // What is wrong.
    CHECK(caught([&] { tsvd::dense_inverse(handle, tsvd::on_host(a, 3, 2)); }).status ==
          TSVD_ERR_ARGUMENT);
    CHECK(caught([&] { tsvd::dense_inverse(handle, a1, X); }).status == TSVD_ERR_ARGUMENT);
    CHECK(caught([&] { tsvd::dense_inverse(handle, turned); }).status == TSVD_ERR_ARGUMENT);
    options.progress = [](double) { return false; };
    CHECK(caught([&] { tsvd::dense_inverse(handle, a1, options); }).status == TSVD_ERR_INTERRUPTED);
    for (int i = 9; i < 12; i++) { // a row of zeros
        a[i] = 0;
    }
    const tsvd_error error = caught([&] { tsvd::dense_inverse(handle, a2); });
    CHECK(error.status == TSVD_ERR_SINGULAR && error.matrix == 1);
    CHECK(tsvd::dense_inverse(handle, tsvd::on_host(a, 0, 0)).X.empty());
}

void
test_memory(tsvd::handle &handle)
{
    if (handle.device() == TSVD_DEVICE_CPU) {
        CHECK(caught([&] { tsvd::memory none(handle, 8); }).status == TSVD_ERR_ARGUMENT);
        return;
    }

    const tsvd::memory memory(handle, 1000);
    CHECK(memory.data() != nullptr);
    memory.wait(memory.stream());
}

void
test_progress(tsvd::handle &handle)
{
    const doubles d(100, 1.0), e(99, 1.0);
    tsvd::options options;
    double last = -1;
    int calls = 0;

    options.progress = [&](double done) {
        CHECK(last <= done && done <= 1);
        last = done;
        calls++;
        return true;
    };
    const tsvd::result<double> whole = tsvd::svd(handle, d, e, options);
    CHECK(calls > 0);

    options.progress = [](double) { return false; };
    CHECK(caught([&] { tsvd::svd(handle, d, e, options); }).status == TSVD_ERR_INTERRUPTED);

    options.progress = [](double) -> bool { throw std::string("mine"); };
    std::string thrown;
    try {
        tsvd::svd(handle, d, e, options);
    } catch (const std::string &text) {
        thrown = text;
    }
    CHECK(thrown == "mine");

    // The handle goes on working, also from another owner; the one it had may be given another.
    options.progress = nullptr;
    tsvd::handle other(std::move(handle));
    CHECK(handle.get() == nullptr);
    CHECK(tsvd::svd(other, d, e, options).s == whole.s);
    handle = std::move(other);
    other = tsvd::handle(TSVD_DEVICE_CPU);
    CHECK(tsvd::svd(other, d, e).s == whole.s);
}

} // namespace

int
main()
{
    tsvd::config config;
    config.threads = 1;
    tsvd::handle handle(config);

    CHECK(std::strcmp(tsvd::version(), TSVD_VERSION) == 0);
    test_forms<double>(handle);
    test_forms<float>(handle);
    test_errors(handle);
    tsvd_blas blas = TSVD_BLAS_INIT;
    blas.dgemm32 = multiply<double>;
    blas.sgemm32 = multiply<float>;
    blas.zgemm32 = multiply_complex<double>;
    blas.cgemm32 = multiply_complex<float>;
    handle.set_blas(&blas);
    test_complex<double>(handle);
    test_complex<float>(handle);
    test_dense<double>(handle);
    test_dense<float>(handle);
    test_inverse<double>(handle);
    test_inverse<float>(handle);
    test_memory(handle);
    test_progress(handle);
    handle.set_threads(0);
    handle.set_blas(nullptr);
    handle.trim();
    if (failures > 0) {
        std::printf("%d checks failed\n", failures);
    }
    return failures > 0;
}
