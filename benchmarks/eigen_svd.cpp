// Eigen's JacobiSVD of many small matrices, for benchmarks/peers.py.  Orders up to 4, and 6 and 8,
// are known to the compiler, as one would write it in C++.
#include <Eigen/Dense>
#include <complex>
#include <cstdint>

namespace
{

// a [count][m][n], u [count][m][k], s [count][k], v [count][n][k], k = min(m, n); u, v: null if
// values alone are wanted.
template <class Scalar, int N>
void
decompose(std::int64_t count, std::int64_t m, std::int64_t n, const Scalar *a, Scalar *u,
          typename Eigen::NumTraits<Scalar>::Real *s, Scalar *v)
{
    constexpr int order = N == 1 ? int(Eigen::ColMajor) : int(Eigen::RowMajor);
    using Real = typename Eigen::NumTraits<Scalar>::Real;
    using Matrix = Eigen::Matrix<Scalar, N, N, order>;
    using Rows = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const std::int64_t k = m < n ? m : n;
    const unsigned fixed = Eigen::ComputeFullU | Eigen::ComputeFullV;
    const unsigned thin = Eigen::ComputeThinU | Eigen::ComputeThinV;
    Eigen::JacobiSVD<Matrix> svd;

    for (std::int64_t i = 0; i < count; i++) {
        const Eigen::Map<const Matrix> matrix(a + i * m * n, m, n);

        svd.compute(matrix, u == nullptr ? 0 : N == Eigen::Dynamic ? thin : fixed);
        Eigen::Map<Eigen::Matrix<Real, Eigen::Dynamic, 1>>(s + i * k, k) = svd.singularValues();
        if (u != nullptr) {
            Eigen::Map<Rows>(u + i * m * k, m, k) = svd.matrixU();
            Eigen::Map<Rows>(v + i * n * k, n, k) = svd.matrixV();
        }
    }
}

template <class Scalar>
void
decompose_all(std::int64_t count, std::int64_t m, std::int64_t n, const Scalar *a, Scalar *u,
              typename Eigen::NumTraits<Scalar>::Real *s, Scalar *v)
{
    switch (m == n ? n : 0) {
    case 1:
        return decompose<Scalar, 1>(count, m, n, a, u, s, v);
    case 2:
        return decompose<Scalar, 2>(count, m, n, a, u, s, v);
    case 3:
        return decompose<Scalar, 3>(count, m, n, a, u, s, v);
    case 4:
        return decompose<Scalar, 4>(count, m, n, a, u, s, v);
    case 6:
        return decompose<Scalar, 6>(count, m, n, a, u, s, v);
    case 8:
        return decompose<Scalar, 8>(count, m, n, a, u, s, v);
    default:
        return decompose<Scalar, Eigen::Dynamic>(count, m, n, a, u, s, v);
    }
}

} // namespace

#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)

extern "C" {

const char *
version()
{
    return STRING(EIGEN_WORLD_VERSION) "." STRING(EIGEN_MAJOR_VERSION) "." STRING(
        EIGEN_MINOR_VERSION);
}

void
svd_float(std::int64_t count, std::int64_t m, std::int64_t n, const float *a, float *u, float *s,
          float *v)
{
    decompose_all(count, m, n, a, u, s, v);
}

void
svd_double(std::int64_t count, std::int64_t m, std::int64_t n, const double *a, double *u,
           double *s, double *v)
{
    decompose_all(count, m, n, a, u, s, v);
}

void
svd_complex(std::int64_t count, std::int64_t m, std::int64_t n, const std::complex<double> *a,
            std::complex<double> *u, double *s, std::complex<double> *v)
{
    decompose_all(count, m, n, a, u, s, v);
}
}
