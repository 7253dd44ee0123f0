/*
 * tsvd for C++14 and later: tsvd.h with containers for arrays, handles that end themselves, and
 * exceptions.
 *
 *     tsvd::handle handle; // the CPU; tsvd::handle(0) is the first CUDA device
 *     const std::vector<double> d = {1, 2, 3}, e = {1, 1};
 *     const tsvd::result<double> svd = tsvd::svd(handle, d, e);
 *
 *     // B = diag(d) + diag(e, 1) = L diag(s) R; row i, column j of L:
 *     const double entry = svd.L_at(i, j);
 *
 * Sizes and indices that are handed in may be of any integer type.
 *
 * Everything is here in this header, on top of the library's C functions.  What they promise in
 * tsvd.h on accuracy, signs, work, memory and streams holds here too, and its functions about the
 * machine need no wrapper.
 *
 * Threads.  As in C: a handle is used by one thread at a time.
 *
 * Exceptions.  Any function may throw that is not noexcept.  All that the library reports is a
 * tsvd::error, which is a std::runtime_error; lack of memory, also for the vectors of results, is a
 * tsvd::memory_error, which is a tsvd::error and no std::bad_alloc.  What the caller's own
 * options::progress throws comes out of the call.  Nothing else is thrown, but a std::bad_alloc
 * where there is not even memory for the exception's text.  After an exception the handle can be
 * used, and the contents of arrays that the caller gave for results are unspecified.
 */
#ifndef TSVD_TSVD_HPP
#define TSVD_TSVD_HPP

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "tsvd/tsvd.h"

namespace tsvd
{

/* The version of the library; TSVD_VERSION is that of the headers. */
inline const char *
version() noexcept
{
    return tsvd_version();
}

/* ---- errors ---- */

/* What the library reports; what() is one sentence without a full stop. */
class error : public std::runtime_error
{
  public:
    explicit error(const tsvd_error &e) : std::runtime_error(e.text), error_(e)
    {
    }

    tsvd_status status() const noexcept
    {
        return error_.status;
    }

    /* Index of the matrix that failed, in the batch in C order: 0 of a single one; -1: none did. */
    std::int64_t matrix() const noexcept
    {
        return error_.matrix;
    }

    /* The number of the CUDA device that failed; TSVD_DEVICE_CPU: none. */
    int device() const noexcept
    {
        return error_.device;
    }

    /* TSVD_ERR_NO_CONVERGENCE, but not of DC: sweeps made; else 0. */
    std::int64_t sweeps() const noexcept
    {
        return error_.sweeps;
    }

    /* TSVD_ERR_MEMORY: bytes asked for; 0: unknown. */
    std::uint64_t wanted() const noexcept
    {
        return error_.wanted;
    }

    /* TSVD_ERR_MEMORY: bytes free; 0: unknown. */
    std::uint64_t available() const noexcept
    {
        return error_.available;
    }

    /* What helps, in the words of tsvd.h; may be empty. */
    const char *advice() const noexcept
    {
        return error_.advice;
    }

  private:
    tsvd_error error_;
};

/* TSVD_ERR_MEMORY: host or device memory is exhausted, for workspace or for a result's vectors. */
class memory_error : public error
{
  public:
    using error::error;
};

namespace detail
{

/* An error that this header finds itself, or that comes without a text. */
inline tsvd_error
make_error(tsvd_status status, const char *text)
{
    tsvd_error e = {};

    e.status = status;
    e.matrix = -1;
    e.device = TSVD_DEVICE_CPU;
    std::snprintf(e.text, sizeof e.text, "%s", text);
    return e;
}

inline void
check(tsvd_status status, const tsvd_error &e)
{
    if (status == TSVD_ERR_MEMORY) {
        throw memory_error(e);
    }
    if (status != TSVD_OK) {
        throw error(e);
    }
}

} // namespace detail

/* ---- handle ---- */

/* tsvd_config with its defaults. */
struct config : tsvd_config {
    config() noexcept
    {
        tsvd_config_init(this, sizeof(tsvd_config));
    }
};

/* A tsvd_handle, which ends with its owner.  A handle that was moved from may only be assigned to
   or destroyed. */
class handle
{
  public:
    /* On TSVD_DEVICE_CPU, or on the CUDA device of this number. */
    explicit handle(int device = TSVD_DEVICE_CPU)
    {
        config c;

        c.device = device;
        create(c);
    }

    explicit handle(const tsvd_config &c)
    {
        create(c);
    }

    /* TSVD_DEVICE_CPU or the number of the CUDA device. */
    int device() const noexcept
    {
        return tsvd_handle_device(get());
    }

    /* Host threads of later calls; 0: as many as OpenMP uses. */
    void set_threads(int threads)
    {
        tsvd_error e;

        detail::check(tsvd_set_threads(get(), threads, &e), e);
    }

    /* The cudaStream_t of later calls, nullptr: the handle's own.  An error for the CPU. */
    void set_stream(void *stream)
    {
        tsvd_error e;

        detail::check(tsvd_set_stream(get(), stream, &e), e);
    }

    /* The BLAS of later calls; copied.  nullptr: the BLAS that the library is linked with. */
    void set_blas(const tsvd_blas *blas)
    {
        tsvd_error e;

        detail::check(tsvd_set_blas(get(), blas, &e), e);
    }

    /* Returns cached memory, of the host and of the device, to the system. */
    void trim()
    {
        tsvd_error e;

        detail::check(tsvd_trim(get(), &e), e);
    }

    /* For functions of tsvd.h; still this object's. */
    tsvd_handle *get() const noexcept
    {
        return handle_.get();
    }

  private:
    struct destroy {
        void operator()(tsvd_handle *h) const noexcept
        {
            tsvd_destroy(h);
        }
    };

    void create(const tsvd_config &c)
    {
        tsvd_handle *h = nullptr;
        tsvd_error e = {};

        detail::check(tsvd_create(&c, &h, &e), e);
        handle_.reset(h);
    }

    std::unique_ptr<tsvd_handle, destroy> handle_;
};

/* ---- arrays ---- */

template <class T> class array;

namespace detail
{

template <class T> struct is_array : std::false_type {
};
template <class T> struct is_array<array<T>> : std::true_type {
};

/* std::data() and std::size() of C++17. */
template <class Container>
constexpr auto
data_of(Container &container) -> decltype(container.data())
{
    return container.data();
}

template <class T, std::size_t N>
constexpr T *
data_of(T (&entries)[N]) noexcept
{
    return entries;
}

template <class T>
constexpr const T *
data_of(const std::initializer_list<T> &entries) noexcept
{
    return entries.begin();
}

template <class Container>
constexpr auto
size_of(const Container &container) -> decltype(container.size())
{
    return container.size();
}

template <class T, std::size_t N>
constexpr std::size_t
size_of(const T (&)[N]) noexcept
{
    return N;
}

/* What data_of() points to.  Entries of a temporary container are const, unless it only refers to
   them, as std::span does. */
template <class Container>
using entry_of = std::remove_pointer_t<decltype(data_of(
    std::declval<std::conditional_t<std::is_lvalue_reference<Container>::value, Container,
                                    const std::remove_reference_t<Container> &>>()))>;

/* Containers of contiguous entries that may be used as a T: a const T takes both. */
template <class Container, class T>
using if_holds = std::enable_if_t<!is_array<std::decay_t<Container>>::value &&
                                  std::is_convertible<entry_of<Container> (*)[], T (*)[]>::value>;

/* Views of entries that may be used as a T, as std::mdspan is one. */
template <class View, class T>
using if_views =
    std::enable_if_t<std::is_convertible<std::remove_pointer_t<decltype(std::declval<const View &>()
                                                                            .data_handle())> (*)[],
                                         T (*)[]>::value &&
                     std::is_integral<decltype(std::declval<const View &>().extent(0))>::value &&
                     std::is_integral<decltype(std::declval<const View &>().stride(0))>::value>;

/* The type of values, and of the parts of a complex number. */
template <class T> struct value {
    using type = T;
};
template <class T> struct value<std::complex<T>> {
    using type = T;
};
template <class T> using value_of = typename value<T>::type;

/* The dtype of an entry; value: whether there is one. */
template <class T> struct dtype_of : std::false_type {
};
template <> struct dtype_of<double> : std::true_type {
    static constexpr tsvd_dtype dtype = TSVD_FLOAT64;
};
template <> struct dtype_of<float> : std::true_type {
    static constexpr tsvd_dtype dtype = TSVD_FLOAT32;
};
template <> struct dtype_of<std::complex<double>> : std::true_type {
    static constexpr tsvd_dtype dtype = TSVD_COMPLEX128;
};
template <> struct dtype_of<std::complex<float>> : std::true_type {
    static constexpr tsvd_dtype dtype = TSVD_COMPLEX64;
};

/* The place of an entry in a vector, of indices of any integer types: (((a) b + c) d + e) .... */
inline std::size_t
place(std::size_t so_far) noexcept
{
    return so_far;
}

template <class Size, class Index, class... Rest>
std::size_t
place(std::size_t so_far, Size size, Index index, Rest... rest) noexcept
{
    return place(so_far * static_cast<std::size_t>(size) + static_cast<std::size_t>(index),
                 rest...);
}

} // namespace detail

/*
 * Numbers of the caller's, and where they lie: array<const double> for input, array<double> for
 * output, and float; for dense matrices also std::complex of both.  It refers to them and does not
 * own them.
 *
 * A one-dimensional array comes by itself from std::vector, std::array, std::span, a C array and
 * all else that has data() and size().  One of up to TSVD_MAX_DIMS dimensions on the host comes
 * from std::mdspan, and from all else that has its data_handle(), rank(), extent() and stride(); by
 * columns, for example, with std::layout_left.  Other shapes and the memory of a device are made by
 * on_host() and on_device().
 */
template <class T> class array
{
  public:
    using number = std::remove_const_t<T>;
    static_assert(detail::dtype_of<number>::value,
                  "tsvd computes with double and float, and with std::complex of both");

    template <class Container, class = detail::if_holds<Container, T>> array(Container &&container)
    {
        const auto size = static_cast<std::int64_t>(detail::size_of(container));

        array_ = tsvd_array_of(detail::data_of(container), TSVD_HOST,
                               detail::dtype_of<number>::dtype, 1, &size);
    }

    template <class View, class = detail::if_views<View, T>, class = void> array(const View &view)
    {
        using rank = decltype(View::rank());
        const int ndim = static_cast<int>(View::rank());
        std::int64_t shape[TSVD_MAX_DIMS] = {};

        static_assert(1 <= View::rank() && View::rank() <= TSVD_MAX_DIMS,
                      "an array has 1 to TSVD_MAX_DIMS dimensions");
        for (int i = 0; i < ndim; i++) {
            shape[i] = static_cast<std::int64_t>(view.extent(static_cast<rank>(i)));
        }
        array_ = tsvd_array_of(view.data_handle(), TSVD_HOST, detail::dtype_of<number>::dtype, ndim,
                               shape);
        for (int i = 0; i < ndim; i++) {
            array_.strides[i] = static_cast<std::int64_t>(view.stride(static_cast<rank>(i))) *
                                static_cast<std::int64_t>(sizeof(T));
        }
    }

    /* An output array is also an input array. */
    template <class U, class = std::enable_if_t<std::is_same<const U, T>::value>>
    array(const array<U> &other) : array_(other.get())
    {
    }

    /* C-contiguous, with these entries along each dimension. */
    template <std::size_t N>
    array(T *data, tsvd_space space, const std::array<std::int64_t, N> &shape)
        : array_(tsvd_array_of(data, space, detail::dtype_of<number>::dtype, static_cast<int>(N),
                               shape.data()))
    {
        static_assert(1 <= N && N <= TSVD_MAX_DIMS, "an array has 1 to TSVD_MAX_DIMS dimensions");
    }

    /* The same array with these strides: bytes from one entry to the next along each dimension.
       They may be negative; those of input also 0. */
    template <class... Bytes> array strided(Bytes... bytes) const
    {
        const std::int64_t strides[] = {static_cast<std::int64_t>(bytes)...};
        array copy(*this);

        if (sizeof...(bytes) != static_cast<std::size_t>(array_.ndim)) {
            throw error(
                detail::make_error(TSVD_ERR_ARGUMENT, "strides are given for each dimension"));
        }
        for (int i = 0; i < array_.ndim; i++) {
            copy.array_.strides[i] = strides[i];
        }
        return copy;
    }

    const tsvd_array &get() const noexcept
    {
        return array_;
    }

  private:
    tsvd_array array_;
};

/* An array of this shape in host memory: on_host(data, matrices, n). */
template <class T, class... Sizes>
array<T>
on_host(T *data, Sizes... shape)
{
    return {data, TSVD_HOST,
            std::array<std::int64_t, sizeof...(Sizes)>{{static_cast<std::int64_t>(shape)...}}};
}

/* An array of this shape in the memory of the handle's CUDA device. */
template <class T, class... Sizes>
array<T>
on_device(T *data, Sizes... shape)
{
    return {data, TSVD_CUDA,
            std::array<std::int64_t, sizeof...(Sizes)>{{static_cast<std::int64_t>(shape)...}}};
}

/* ---- options ---- */

/* Values first .. first + count - 1; for the fields of this name in options. */
struct range {
    std::int64_t first, count;
};

/* tsvd_options with its defaults.  `check` and `check_arg` are not used if `progress` is set. */
struct options : tsvd_options {
    options() noexcept
    {
        tsvd_options_init(this, sizeof(tsvd_options));
    }

    /* Asks for the values first .. first + count - 1; count -1: for all from `first` on. */
    template <class First, class Count> options &set_range(First first_value, Count count_of_values)
    {
        first = static_cast<std::int64_t>(first_value);
        count = static_cast<std::int64_t>(count_of_values);
        return *this;
    }

    /* The same for what select() returns. */
    options &set_range(range values)
    {
        return set_range(values.first, values.count);
    }

    /* Called now and then from the calling thread with the share of work done in [0, 1].  Returns
       whether to go on; if not, the call ends with TSVD_ERR_INTERRUPTED.  What it throws ends the
       call too, and comes out of it. */
    std::function<bool(double)> progress;
};

/* ---- results ---- */

/* L diag(s) R of each matrix, one after the other, row by row: of matrix m
       L(i, j) is L[(m rows + i) k + j],   s(j) is s[m k + j],
       R(j, i) is R[(m k + j) columns + i]. */
template <class real> struct result {
    std::vector<real> L, s, R;
    std::int64_t n;             /* values of every matrix */
    std::int64_t rows, columns; /* of every matrix: n, but n + 1 on the longer side if e has n
                                   entries */
    std::int64_t k;             /* values of each: n, or options::count */
    std::int64_t matrices;      /* in the batch; 1 without a batch */
    tsvd_info info;             /* what was done */

    /* Row i and column j of L, value j, and row j and column i of R, of matrix m of the batch. */
    template <class I, class J, class M = int> const real &L_at(I i, J j, M m = 0) const
    {
        return L[detail::place(0, 1, m, rows, i, k, j)];
    }

    template <class J, class M = int> const real &s_at(J j, M m = 0) const
    {
        return s[detail::place(0, 1, m, k, j)];
    }

    template <class J, class I, class M = int> const real &R_at(J j, I i, M m = 0) const
    {
        return R[detail::place(0, 1, m, k, j, columns, i)];
    }
};

/* U diag(S) Vh of each dense matrix, one after the other, row by row: of matrix i of the batch
       U(r, j) is U[(i m + r) k + j],   S(j) is S[i k + j],   Vh(j, c) is Vh[(i k + j) n + c]. */
template <class scalar> struct dense_result {
    std::vector<scalar> U;
    std::vector<detail::value_of<scalar>> S; /* double or float also for complex matrices */
    std::vector<scalar> Vh;
    std::int64_t m, n;     /* rows and columns of every matrix */
    std::int64_t k;        /* values of each: the smaller of m and n, or options::count */
    std::int64_t matrices; /* in the batch; 1 without a batch */
    tsvd_info info;        /* what was done */

    /* Row i and column j of U, value j, and row j and column i of Vh, of matrix b of the batch. */
    template <class I, class J, class B = int> const scalar &U_at(I i, J j, B b = 0) const
    {
        return U[detail::place(0, 1, b, m, i, k, j)];
    }

    template <class J, class B = int> const detail::value_of<scalar> &S_at(J j, B b = 0) const
    {
        return S[detail::place(0, 1, b, k, j)];
    }

    template <class J, class I, class B = int> const scalar &Vh_at(J j, I i, B b = 0) const
    {
        return Vh[detail::place(0, 1, b, k, j, n, i)];
    }
};

/* The inverse X of each dense matrix, one after the other, row by row: of matrix i of the batch
       X(r, c) is X[(i n + r) n + c]. */
template <class scalar> struct inverse_result {
    std::vector<scalar> X;
    std::int64_t n;         /* order of every matrix */
    std::int64_t matrices;  /* in the batch; 1 without a batch */
    tsvd_inverse_info info; /* condition and time */

    /* Row i and column j of X, of matrix b of the batch. */
    template <class I, class J, class B = int> const scalar &X_at(I i, J j, B b = 0) const
    {
        return X[detail::place(0, 1, b, n, i, n, j)];
    }
};

namespace detail
{

struct shape {
    int ndim = 0;
    std::int64_t extent[TSVD_MAX_DIMS] = {};

    void append(std::int64_t entries) noexcept
    {
        if (ndim < TSVD_MAX_DIMS) {
            extent[ndim++] = entries;
        }
    }
};

/* d and e as the library takes them, and the shapes of their results. */
template <class real> struct problem {
    tsvd_array d, e;

    problem(const array<const real> &d_array, const array<const real> &e_array) noexcept
        : d(d_array.get()), e(e_array.get())
    {
    }

    std::int64_t n() const noexcept
    {
        return d.shape[d.ndim - 1];
    }

    /* 1 if there is a column more than rows, or of lower matrices a row more than columns. */
    std::int64_t extra() const noexcept
    {
        return n() > 0 && e.shape[e.ndim - 1] == n() ? 1 : 0;
    }

    std::int64_t rows(const options &o) const noexcept
    {
        return n() + (o.lower ? extra() : 0);
    }

    std::int64_t columns(const options &o) const noexcept
    {
        return n() + (o.lower ? 0 : extra());
    }

    /* The batch dimensions, broadcast; if they do not fit together, the library says so. */
    shape batch() const noexcept
    {
        const int ndim = (d.ndim > e.ndim ? d.ndim : e.ndim) - 1;
        shape s;

        for (int i = 0; i < ndim; i++) {
            const int i_d = i - (ndim - (d.ndim - 1)), i_e = i - (ndim - (e.ndim - 1));
            const std::int64_t of_d = i_d >= 0 ? d.shape[i_d] : 1;

            s.append(of_d == 1 && i_e >= 0 ? e.shape[i_e] : of_d);
        }
        return s;
    }

    shape values(std::int64_t k) const noexcept
    {
        shape s = batch();

        s.append(k);
        return s;
    }

    shape vectors(std::int64_t rows, std::int64_t columns) const noexcept
    {
        shape s = values(rows);

        s.append(columns);
        return s;
    }
};

/* A result's array of this shape: as the caller gave it, or made from one dimension. */
template <class real>
tsvd_array
shaped(const char *name, const array<real> &given, const shape &wanted)
{
    const tsvd_array &a = given.get();
    std::uint64_t entries = 1;
    char text[96];

    if (a.ndim != 1 || wanted.ndim == 1 || a.strides[0] != sizeof(real)) {
        return a;
    }
    for (int i = 0; i < wanted.ndim; i++) {
        if (wanted.extent[i] < 0) { // the range does not exist; the library says so
            return a;
        }
        entries *= static_cast<std::uint64_t>(wanted.extent[i]);
    }
    if (static_cast<std::uint64_t>(a.shape[0]) != entries) {
        std::snprintf(text, sizeof text, "%s has %lld entries, and the result has %llu", name,
                      static_cast<long long>(a.shape[0]), static_cast<unsigned long long>(entries));
        throw error(make_error(TSVD_ERR_ARGUMENT, text));
    }
    return tsvd_array_of(a.data, a.space, a.dtype, wanted.ndim, wanted.extent);
}

/* The caller's options for C, with progress as check(); no exception crosses a frame of C. */
class c_options
{
  public:
    explicit c_options(const options &o) : options_(o), progress_(o.progress)
    {
        if (progress_) {
            options_.check = ask;
            options_.check_arg = this;
        }
    }
    c_options(const c_options &) = delete;
    c_options &operator=(const c_options &) = delete;

    const tsvd_options *get() const noexcept
    {
        return &options_;
    }

    /* Throws what progress threw, or else what the library reports. */
    void check(tsvd_status status, const tsvd_error &e) const
    {
        if (thrown_) {
            std::rethrow_exception(thrown_);
        }
        detail::check(status, e);
    }

  private:
    static int ask(void *self, double done) noexcept
    {
        c_options *o = static_cast<c_options *>(self);

        try {
            return o->progress_(done) ? 0 : 1;
        } catch (...) {
            o->thrown_ = std::current_exception();
            return 1;
        }
    }

    tsvd_options options_;
    const std::function<bool(double)> &progress_;
    std::exception_ptr thrown_;
};

template <class real>
tsvd_plan
make_plan(handle &h, const problem<real> &p, const options &o, bool vectors)
{
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error e = {};

    check(tsvd_make_plan(h.get(), &p.d, &p.e, &o, vectors ? 1 : 0, &plan, &e), e);
    return plan;
}

/* L and R nullptr: values only. */
template <class real>
tsvd_info
compute(handle &h, const problem<real> &p, const array<real> *L, const array<real> &s,
        const array<real> *R, const options &o)
{
    const std::int64_t n = p.n();
    const std::int64_t rest = o.first >= 0 && o.first <= n ? n - o.first : -1;
    const std::int64_t k = o.count >= 0 ? o.count : rest;
    const tsvd_array s_array = shaped("s", s, p.values(k));
    tsvd_array L_array = {}, R_array = {};
    c_options c(o);
    tsvd_info info = TSVD_INFO_INIT;
    tsvd_error e = {};

    if (L != nullptr && R != nullptr) {
        L_array = shaped("L", *L, p.vectors(p.rows(o), k));
        R_array = shaped("R", *R, p.vectors(k, p.columns(o)));
    }
    c.check(tsvd_svd(h.get(), &p.d, &p.e, c.get(), L != nullptr ? &L_array : nullptr, &s_array,
                     R != nullptr ? &R_array : nullptr, &info, &e),
            e);
    return info;
}

/* Calls `resize`, which takes the memory of results. */
template <class Resize>
void
resize_results(std::uint64_t bytes, Resize resize)
{
    try {
        if (bytes > PTRDIFF_MAX) {
            throw std::bad_alloc();
        }
        resize();
    } catch (const std::bad_alloc &) {
        tsvd_error e = make_error(TSVD_ERR_MEMORY, "there is no memory for the result");

        e.wanted = bytes;
        e.available = tsvd_host_memory_available();
        throw memory_error(e);
    }
}

template <class real>
result<real>
compute(handle &h, const problem<real> &p, bool vectors, const options &o)
{
    const tsvd_plan plan = make_plan(h, p, o, vectors); // checks all arguments
    result<real> r = {{}, {}, {}, plan.n, p.rows(o), p.columns(o), plan.count, plan.matrices, {}};

    resize_results(plan.result_bytes, [&] {
        const auto values = static_cast<std::size_t>(r.matrices * r.k);

        if (vectors) { // first, as they are what may not fit
            r.L.resize(values * static_cast<std::size_t>(r.rows));
            r.R.resize(values * static_cast<std::size_t>(r.columns));
        }
        r.s.resize(values);
    });

    const array<real> L(r.L), s(r.s), R(r.R);
    r.info = compute(h, p, vectors ? &L : nullptr, s, vectors ? &R : nullptr, o);
    return r;
}

template <class real>
range
select(handle &h, const problem<real> &p, double low, double high, const options &o)
{
    range r = {0, 0};
    tsvd_error e = {};

    check(tsvd_select(h.get(), &p.d, &p.e, &o, low, high, &r.first, &r.count, &e), e);
    return r;
}

} // namespace detail

/* ---- plan ---- */

/*
 * What svd(), or without vectors svdvals(), would do with these arguments, and the bytes that it
 * would take.  The entries of d and e are not read.
 */
inline tsvd_plan
make_plan(handle &h, const array<const double> &d, const array<const double> &e,
          const options &o = {}, bool vectors = true)
{
    return detail::make_plan<double>(h, {d, e}, o, vectors);
}

inline tsvd_plan
make_plan(handle &h, const array<const float> &d, const array<const float> &e,
          const options &o = {}, bool vectors = true)
{
    return detail::make_plan<float>(h, {d, e}, o, vectors);
}

/* The same for one matrix of order n that has no entries yet: make_plan<double>(h, n). */
template <class real, class Size>
tsvd_plan
make_plan(handle &h, Size n, const options &o = {}, bool vectors = true)
{
    const real *none = nullptr;
    const auto order = static_cast<std::int64_t>(n);

    return make_plan(h, on_host(none, order), on_host(none, order > 0 ? order - 1 : 0), o, vectors);
}

/* ---- the decomposition ---- */

/*
 * The SVD of a matrix or of every matrix of a batch, B = L diag(s) R.
 *
 * h       where to compute
 * d, e    the diagonals, (batch..., n) and (batch..., n-1) on the host or on the handle's device,
 *         with any strides; the batch dimensions broadcast.  A container is one matrix; for n = 0
 *         that of e is empty too.  With n entries of e matrices are n x (n+1), or with o.lower
 *         (n+1) x n
 * o       the defaults, where it is left out
 *
 * Returns the results in vectors of the host.
 */
inline result<double>
svd(handle &h, const array<const double> &d, const array<const double> &e, const options &o = {})
{
    return detail::compute<double>(h, {d, e}, true, o);
}

inline result<float>
svd(handle &h, const array<const float> &d, const array<const float> &e, const options &o = {})
{
    return detail::compute<float>(h, {d, e}, true, o);
}

/* The values alone: matrix after matrix, those of each in descending order. */
inline std::vector<double>
svdvals(handle &h, const array<const double> &d, const array<const double> &e,
        const options &o = {})
{
    return detail::compute<double>(h, {d, e}, false, o).s;
}

inline std::vector<float>
svdvals(handle &h, const array<const float> &d, const array<const float> &e, const options &o = {})
{
    return detail::compute<float>(h, {d, e}, false, o).s;
}

/*
 * The same into arrays of the caller's, all on the host or all on the handle's device.
 *
 * L, s, R   (batch..., rows, k), (batch..., k) and (batch..., k, columns) for the k wanted values;
 *           or of one dimension with as many entries, as a container is.  They share no memory with
 *           d, e and each other
 *
 * Returns what was done; as in C, results on a device are there in the order of the stream.
 */
inline tsvd_info
svd(handle &h, const array<const double> &d, const array<const double> &e, const array<double> &L,
    const array<double> &s, const array<double> &R, const options &o = {})
{
    return detail::compute<double>(h, {d, e}, &L, s, &R, o);
}

inline tsvd_info
svd(handle &h, const array<const float> &d, const array<const float> &e, const array<float> &L,
    const array<float> &s, const array<float> &R, const options &o = {})
{
    return detail::compute<float>(h, {d, e}, &L, s, &R, o);
}

inline tsvd_info
svdvals(handle &h, const array<const double> &d, const array<const double> &e,
        const array<double> &s, const options &o = {})
{
    return detail::compute<double>(h, {d, e}, nullptr, s, nullptr, o);
}

inline tsvd_info
svdvals(handle &h, const array<const float> &d, const array<const float> &e, const array<float> &s,
        const options &o = {})
{
    return detail::compute<float>(h, {d, e}, nullptr, s, nullptr, o);
}

/* ---- ranges ---- */

/*
 * Which values of one matrix lie in (low, high]: the range for options.
 *
 * d, e        (n) and (n-1) or (n), as for svd()
 * low, high   in the units of B; an infinite one bounds nothing
 *
 * If there is none, the count of the range is 0.
 */
inline range
select(handle &h, const array<const double> &d, const array<const double> &e, double low,
       double high, const options &o = {})
{
    return detail::select<double>(h, {d, e}, low, high, o);
}

inline range
select(handle &h, const array<const float> &d, const array<const float> &e, double low, double high,
       const options &o = {})
{
    return detail::select<float>(h, {d, e}, low, high, o);
}

/* ---- dense matrices ---- */

namespace detail
{

/* Dense matrices as the library takes them, and the shapes of their results. */
template <class scalar> struct dense_problem {
    tsvd_array a;

    explicit dense_problem(const array<const scalar> &a_array) noexcept : a(a_array.get())
    {
    }

    /* 0 if a has less than two dimensions; the library says so */
    std::int64_t m() const noexcept
    {
        return a.ndim >= 2 ? a.shape[a.ndim - 2] : 0;
    }

    std::int64_t n() const noexcept
    {
        return a.ndim >= 2 ? a.shape[a.ndim - 1] : 0;
    }

    /* The number of values that are wanted; -1: the range does not exist. */
    std::int64_t wanted(const options &o) const noexcept
    {
        const std::int64_t all = m() < n() ? m() : n();
        const std::int64_t rest = o.first >= 0 && o.first <= all ? all - o.first : -1;

        return o.count >= 0 ? o.count : rest;
    }

    shape values(std::int64_t k) const noexcept
    {
        shape s;

        for (int i = 0; i + 2 < a.ndim; i++) {
            s.append(a.shape[i]);
        }
        s.append(k);
        return s;
    }

    shape vectors(std::int64_t rows, std::int64_t columns) const noexcept
    {
        shape s = values(rows);

        s.append(columns);
        return s;
    }
};

/* Arrays of dense results for C. */
template <class scalar> struct dense_arrays {
    tsvd_array U = {}, S, Vh = {};

    dense_arrays(const dense_problem<scalar> &p, const array<scalar> *U_array,
                 const array<value_of<scalar>> &S_array, const array<scalar> *Vh_array,
                 const options &o)
        : S(shaped("S", S_array, p.values(p.wanted(o))))
    {
        if (U_array != nullptr && Vh_array != nullptr) {
            U = shaped("U", *U_array, p.vectors(p.m(), p.wanted(o)));
            Vh = shaped("Vh", *Vh_array, p.vectors(p.wanted(o), p.n()));
        }
    }
};

/* The results of `solve`, which fills arrays for C, in arrays of the caller's; U and Vh may be
   nullptr. */
template <class scalar, class Solve>
tsvd_info
solve_dense(const dense_problem<scalar> &p, const array<scalar> *U,
            const array<value_of<scalar>> &S, const array<scalar> *Vh, const options &o,
            Solve solve)
{
    const dense_arrays<scalar> to(p, U, S, Vh, o);
    c_options c(o);
    tsvd_info info = TSVD_INFO_INIT;
    tsvd_error e = {};

    c.check(solve(c.get(), U != nullptr ? &to.U : nullptr, &to.S, Vh != nullptr ? &to.Vh : nullptr,
                  &info, &e),
            e);
    return info;
}

/* The same into vectors. */
template <class scalar, class Solve>
dense_result<scalar>
solve_dense(handle &h, const dense_problem<scalar> &p, bool vectors, const options &o, Solve solve)
{
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error e = {};

    check(tsvd_dense_plan(h.get(), &p.a, &o, vectors ? 1 : 0, &plan, &e), e); // and all arguments

    dense_result<scalar> r = {{}, {}, {}, p.m(), p.n(), plan.count, plan.matrices, {}};

    resize_results(plan.result_bytes, [&] {
        const auto values = static_cast<std::size_t>(r.matrices * r.k);

        if (vectors) { // first, as they are what may not fit
            r.U.resize(values * static_cast<std::size_t>(r.m));
            r.Vh.resize(values * static_cast<std::size_t>(r.n));
        }
        r.S.resize(values);
    });

    const array<scalar> U(r.U), Vh(r.Vh);
    const array<value_of<scalar>> S(r.S);

    r.info = solve_dense(p, vectors ? &U : nullptr, S, vectors ? &Vh : nullptr, o, solve);
    return r;
}

/* tsvd_dense_svd() of a problem, for solve_dense(). */
template <class scalar>
auto
dense_svd_of(handle &h, const dense_problem<scalar> &p)
{
    return [&h, &p](const tsvd_options *o, const tsvd_array *U, const tsvd_array *S,
                    const tsvd_array *Vh, tsvd_info *info,
                    tsvd_error *e) { return tsvd_dense_svd(h.get(), &p.a, o, U, S, Vh, info, e); };
}

} // namespace detail

/*
 * The SVD of a dense matrix or of every matrix of a batch, A = U diag(S) Vh, in the economy size.
 *
 * h   where to compute; the CPU needs a BLAS (set_blas()), unless the library is linked with one
 * a   (batch..., m, n) on the host or on the handle's device, with any strides: on_host(data, m, n)
 * o   the defaults, where it is left out
 *
 * Returns the results in vectors of the host.
 */
inline dense_result<double>
dense_svd(handle &h, const array<const double> &a, const options &o = {})
{
    const detail::dense_problem<double> p(a);

    return detail::solve_dense(h, p, true, o, detail::dense_svd_of(h, p));
}

inline dense_result<float>
dense_svd(handle &h, const array<const float> &a, const options &o = {})
{
    const detail::dense_problem<float> p(a);

    return detail::solve_dense(h, p, true, o, detail::dense_svd_of(h, p));
}

inline dense_result<std::complex<double>>
dense_svd(handle &h, const array<const std::complex<double>> &a, const options &o = {})
{
    const detail::dense_problem<std::complex<double>> p(a);

    return detail::solve_dense(h, p, true, o, detail::dense_svd_of(h, p));
}

inline dense_result<std::complex<float>>
dense_svd(handle &h, const array<const std::complex<float>> &a, const options &o = {})
{
    const detail::dense_problem<std::complex<float>> p(a);

    return detail::solve_dense(h, p, true, o, detail::dense_svd_of(h, p));
}

/* The values alone: matrix after matrix, those of each in descending order. */
inline std::vector<double>
dense_svdvals(handle &h, const array<const double> &a, const options &o = {})
{
    const detail::dense_problem<double> p(a);

    return detail::solve_dense(h, p, false, o, detail::dense_svd_of(h, p)).S;
}

inline std::vector<float>
dense_svdvals(handle &h, const array<const float> &a, const options &o = {})
{
    const detail::dense_problem<float> p(a);

    return detail::solve_dense(h, p, false, o, detail::dense_svd_of(h, p)).S;
}

inline std::vector<double>
dense_svdvals(handle &h, const array<const std::complex<double>> &a, const options &o = {})
{
    const detail::dense_problem<std::complex<double>> p(a);

    return detail::solve_dense(h, p, false, o, detail::dense_svd_of(h, p)).S;
}

inline std::vector<float>
dense_svdvals(handle &h, const array<const std::complex<float>> &a, const options &o = {})
{
    const detail::dense_problem<std::complex<float>> p(a);

    return detail::solve_dense(h, p, false, o, detail::dense_svd_of(h, p)).S;
}

/*
 * The same into arrays of the caller's, all on the host or all on the handle's device.
 *
 * U, S, Vh   (batch..., m, k), (batch..., k) and (batch..., k, n) for the k wanted values; or of
 *            one dimension with as many entries.  If all values are wanted U may be
 *            (batch..., m, m) and Vh (batch..., n, n).  They share no memory with a and each other
 *
 * Returns what was done; as in C, results on a device are there in the order of the stream.
 */
inline tsvd_info
dense_svd(handle &h, const array<const double> &a, const array<double> &U, const array<double> &S,
          const array<double> &Vh, const options &o = {})
{
    const detail::dense_problem<double> p(a);

    return detail::solve_dense(p, &U, S, &Vh, o, detail::dense_svd_of(h, p));
}

inline tsvd_info
dense_svd(handle &h, const array<const float> &a, const array<float> &U, const array<float> &S,
          const array<float> &Vh, const options &o = {})
{
    const detail::dense_problem<float> p(a);

    return detail::solve_dense(p, &U, S, &Vh, o, detail::dense_svd_of(h, p));
}

inline tsvd_info
dense_svd(handle &h, const array<const std::complex<double>> &a,
          const array<std::complex<double>> &U, const array<double> &S,
          const array<std::complex<double>> &Vh, const options &o = {})
{
    const detail::dense_problem<std::complex<double>> p(a);

    return detail::solve_dense(p, &U, S, &Vh, o, detail::dense_svd_of(h, p));
}

inline tsvd_info
dense_svd(handle &h, const array<const std::complex<float>> &a, const array<std::complex<float>> &U,
          const array<float> &S, const array<std::complex<float>> &Vh, const options &o = {})
{
    const detail::dense_problem<std::complex<float>> p(a);

    return detail::solve_dense(p, &U, S, &Vh, o, detail::dense_svd_of(h, p));
}

/*
 * Dense matrices in bidiagonal form, A = Q B P^H, with B real, Q and P.  It uses its handle until
 * its end.
 * A reduction that was moved from may only be assigned to or destroyed.
 */
template <class scalar> class reduction
{
    template <class T> using value_of = detail::value_of<T>;

  public:
    /* Reduces every matrix of a, as for dense_svd(). */
    reduction(handle &h, const array<const scalar> &a, const options &o = {})
        : handle_(&h), problem_(a)
    {
        tsvd_reduction *r = nullptr;
        detail::c_options c(o);
        tsvd_error e = {};

        c.check(tsvd_dense_reduce(h.get(), &problem_.a, c.get(), &r, &e), e);
        reduction_.reset(r);
    }

    /* Restores what save() returned.  a: of the shape of the matrices; its data is not read. */
    reduction(handle &h, const array<const scalar> &a, const std::vector<unsigned char> &state)
        : handle_(&h), problem_(a)
    {
        tsvd_reduction *r = nullptr;
        tsvd_error e = {};

        detail::check(
            tsvd_reduction_restore(h.get(), &problem_.a, state.data(), state.size(), &r, &e), e);
        reduction_.reset(r);
    }

    /* The bytes that the constructor above restores, on a device of the same kind, in this version
       of tsvd. */
    std::vector<unsigned char> save() const
    {
        const std::uint64_t bytes = tsvd_reduction_state_bytes(get());
        std::vector<unsigned char> state;
        tsvd_error e = {};

        detail::resize_results(bytes, [&] { state.resize(static_cast<std::size_t>(bytes)); });
        detail::check(tsvd_reduction_save(get(), state.data(), &e), e);
        return state;
    }

    /* B: d (batch..., p) and e (batch..., p-1) for the smaller p of m and n, or of one dimension
       with as many entries.  e is above the diagonal if m >= n, and else below it. */
    void entries(const array<value_of<scalar>> &d, const array<value_of<scalar>> &e) const
    {
        const std::int64_t p = problem_.wanted({});
        const tsvd_array of_d = detail::shaped("d", d, problem_.values(p));
        const tsvd_array of_e = detail::shaped("e", e, problem_.values(p > 0 ? p - 1 : 0));
        tsvd_error error = {};

        detail::check(tsvd_reduction_entries(get(), &of_d, &of_e, &error), error);
    }

    /* Which values of one matrix lie in (low, high], as select() for a bidiagonal one. */
    range select(double low, double high) const
    {
        range r = {0, 0};
        tsvd_error e = {};

        detail::check(tsvd_reduction_select(get(), low, high, &r.first, &r.count, &e), e);
        return r;
    }

    /* X = Q X or Q^H X (TSVD_LEFT), or the same with P (TSVD_RIGHT).  x: (batch..., m, c) for Q
       and (batch..., n, c) for P, any c, C-contiguous. */
    void apply(tsvd_side side, bool transposed, const array<scalar> &x, const options &o = {}) const
    {
        detail::c_options c(o);
        tsvd_error e = {};

        c.check(tsvd_reduction_apply(get(), side, transposed ? 1 : 0, &x.get(), c.get(), &e), e);
    }

    /* The rest of dense_svd() and dense_svdvals(), as often as it is wanted. */
    dense_result<scalar> svd(const options &o = {}) const
    {
        return detail::solve_dense(*handle_, problem_, true, o, solver());
    }

    std::vector<value_of<scalar>> svdvals(const options &o = {}) const
    {
        return detail::solve_dense(*handle_, problem_, false, o, solver()).S;
    }

    tsvd_info svd(const array<scalar> &U, const array<value_of<scalar>> &S, const array<scalar> &Vh,
                  const options &o = {}) const
    {
        return detail::solve_dense(problem_, &U, S, &Vh, o, solver());
    }

    /* For functions of tsvd.h; still this object's. */
    tsvd_reduction *get() const noexcept
    {
        return reduction_.get();
    }

  private:
    struct destroy {
        void operator()(tsvd_reduction *r) const noexcept
        {
            tsvd_reduction_destroy(r);
        }
    };

    auto solver() const
    {
        return [this](const tsvd_options *o, const tsvd_array *U, const tsvd_array *S,
                      const tsvd_array *Vh, tsvd_info *info,
                      tsvd_error *e) { return tsvd_reduction_svd(get(), o, U, S, Vh, info, e); };
    }

    handle *handle_;
    detail::dense_problem<scalar> problem_; /* its data is not read */
    std::unique_ptr<tsvd_reduction, destroy> reduction_;
};

/* ---- the inverse ---- */

namespace detail
{

template <class scalar>
tsvd_plan
inverse_plan(handle &h, const array<const scalar> &a, const options &o, bool refine)
{
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_error e = {};

    check(tsvd_inverse_plan(h.get(), &a.get(), &o, refine ? 1 : 0, &plan, &e), e);
    return plan;
}

template <class scalar>
tsvd_inverse_info
invert(handle &h, const array<const scalar> &a, const array<scalar> &X, const options &o,
       bool refine)
{
    const dense_problem<scalar> p(a);
    const tsvd_array to = shaped("X", X, p.vectors(p.m(), p.n()));
    c_options c(o);
    tsvd_inverse_info info = TSVD_INVERSE_INFO_INIT;
    tsvd_error e = {};

    c.check(tsvd_dense_inverse(h.get(), &p.a, c.get(), refine ? 1 : 0, &to, &info, &e), e);
    return info;
}

/* The same into a vector. */
template <class scalar>
inverse_result<scalar>
invert(handle &h, const array<const scalar> &a, const options &o, bool refine)
{
    const tsvd_plan plan = inverse_plan(h, a, o, refine); // checks all arguments
    inverse_result<scalar> r = {{}, plan.n, plan.matrices, {}};

    resize_results(plan.result_bytes,
                   [&] { r.X.resize(static_cast<std::size_t>(r.matrices * r.n * r.n)); });
    r.info = invert(h, a, array<scalar>(r.X), o, refine);
    return r;
}

} // namespace detail

/* What dense_inverse() would take, for results where a is; the entries of a are not read. */
inline tsvd_plan
inverse_plan(handle &h, const array<const double> &a, const options &o = {}, bool refine = false)
{
    return detail::inverse_plan<double>(h, a, o, refine);
}

inline tsvd_plan
inverse_plan(handle &h, const array<const float> &a, const options &o = {}, bool refine = false)
{
    return detail::inverse_plan<float>(h, a, o, refine);
}

inline tsvd_plan
inverse_plan(handle &h, const array<const std::complex<double>> &a, const options &o = {},
             bool refine = false)
{
    return detail::inverse_plan<std::complex<double>>(h, a, o, refine);
}

inline tsvd_plan
inverse_plan(handle &h, const array<const std::complex<float>> &a, const options &o = {},
             bool refine = false)
{
    return detail::inverse_plan<std::complex<float>>(h, a, o, refine);
}

/*
 * The inverse of a dense matrix or of every matrix of a batch, A X = I.
 *
 * h        where to compute; the CPU needs a BLAS (set_blas()), unless the library is linked with
 *          one
 * a        (batch..., n, n) on the host or on the handle's device, with any strides:
 *          on_host(data, n, n)
 * o        the defaults, where it is left out
 * refine   one step of Newton's iteration where it converges
 *
 * Returns the inverses in a vector of the host.  The error of status TSVD_ERR_SINGULAR names the
 * first matrix that has none.
 */
inline inverse_result<double>
dense_inverse(handle &h, const array<const double> &a, const options &o = {}, bool refine = false)
{
    return detail::invert<double>(h, a, o, refine);
}

inline inverse_result<float>
dense_inverse(handle &h, const array<const float> &a, const options &o = {}, bool refine = false)
{
    return detail::invert<float>(h, a, o, refine);
}

inline inverse_result<std::complex<double>>
dense_inverse(handle &h, const array<const std::complex<double>> &a, const options &o = {},
              bool refine = false)
{
    return detail::invert<std::complex<double>>(h, a, o, refine);
}

inline inverse_result<std::complex<float>>
dense_inverse(handle &h, const array<const std::complex<float>> &a, const options &o = {},
              bool refine = false)
{
    return detail::invert<std::complex<float>>(h, a, o, refine);
}

/*
 * The same into an array of the caller's, on the host or on the handle's device.
 *
 * X   (batch..., n, n); or of one dimension with as many entries.  It shares no memory with a
 *
 * Returns what is known of the inverses.
 */
inline tsvd_inverse_info
dense_inverse(handle &h, const array<const double> &a, const array<double> &X,
              const options &o = {}, bool refine = false)
{
    return detail::invert<double>(h, a, X, o, refine);
}

inline tsvd_inverse_info
dense_inverse(handle &h, const array<const float> &a, const array<float> &X, const options &o = {},
              bool refine = false)
{
    return detail::invert<float>(h, a, X, o, refine);
}

inline tsvd_inverse_info
dense_inverse(handle &h, const array<const std::complex<double>> &a,
              const array<std::complex<double>> &X, const options &o = {}, bool refine = false)
{
    return detail::invert<std::complex<double>>(h, a, X, o, refine);
}

inline tsvd_inverse_info
dense_inverse(handle &h, const array<const std::complex<float>> &a,
              const array<std::complex<float>> &X, const options &o = {}, bool refine = false)
{
    return detail::invert<std::complex<float>>(h, a, X, o, refine);
}

/* ---- device memory ---- */

/* Memory of a handle's CUDA device, which may outlive the handle; tsvd_memory_take() says what its
   stream must do. */
class memory
{
  public:
    memory(handle &h, std::size_t bytes)
    {
        tsvd_memory *m = nullptr;
        tsvd_error e = {};

        detail::check(tsvd_memory_take(h.get(), bytes, &m, &e), e);
        memory_.reset(m);
    }

    /* The first byte, on the device, aligned to 256 bytes. */
    void *data() const noexcept
    {
        return tsvd_memory_data(memory_.get());
    }

    /* The cudaStream_t in whose order the memory was taken, and is given back. */
    void *stream() const noexcept
    {
        return tsvd_memory_stream(memory_.get());
    }

    /* Makes `stream`, a cudaStream_t of the device, wait for what is now in the memory's stream. */
    void wait(void *stream) const
    {
        tsvd_error e = {};

        detail::check(tsvd_memory_wait(memory_.get(), stream, &e), e);
    }

  private:
    struct release {
        void operator()(tsvd_memory *m) const noexcept
        {
            tsvd_memory_release(m);
        }
    };

    std::unique_ptr<tsvd_memory, release> memory_;
};

} // namespace tsvd

#endif
