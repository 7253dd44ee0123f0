/*
 * Programs of later versions, whose structures have further fields: what is read may have nothing
 * but zeros there, and what is filled gets zeros there.  And structures that nobody has
 * initialised, or those of no version.
 */
#include <string.h>

#include "check.h"
#include "plain_blas.h"
#include "tsvd/tsvd.h"

/* Larger than any structure of a version has been, or will be. */
enum { BYTES_MOST = 4096 };

/* A structure with further fields, and what comes after it in memory. */
#define LATER(type)                                                                                \
    union {                                                                                        \
        type now;                                                                                  \
        unsigned char bytes[sizeof(type) + 40];                                                    \
    }
enum { MORE = 24, AFTER = 16 };

typedef LATER(tsvd_config) later_config;
typedef LATER(tsvd_options) later_options;
typedef LATER(tsvd_blas) later_blas;
typedef LATER(tsvd_plan) later_plan;
typedef LATER(tsvd_info) later_info;
typedef LATER(tsvd_inverse_info) later_inverse_info;

/* ---- calls ---- */

static tsvd_handle *handle;
static double numbers[4][16];

/* The arguments that calls differ in. */
struct given {
    const tsvd_options *options;
    tsvd_plan *plan;
    tsvd_info *info;
    tsvd_inverse_info *inverse;
};

/* An array of order 2: of one dimension, or of two. */
static tsvd_array
array_of(int which, int ndim, int64_t n)
{
    const int64_t shape[] = {n, n};

    return tsvd_array_of(numbers[which], TSVD_HOST, TSVD_FLOAT64, ndim, shape);
}

static tsvd_status
svd(struct given given, tsvd_error *error)
{
    const tsvd_array d = array_of(0, 1, 2), e = array_of(1, 1, 1), s = array_of(2, 1, 2);

    return tsvd_svd(handle, &d, &e, given.options, NULL, &s, NULL, given.info, error);
}

static tsvd_status
select_range(struct given given, tsvd_error *error)
{
    const tsvd_array d = array_of(0, 1, 2), e = array_of(1, 1, 1);
    int64_t first, count;

    return tsvd_select(handle, &d, &e, given.options, 0, 1, &first, &count, error);
}

static tsvd_status
make_plan(struct given given, tsvd_error *error)
{
    const tsvd_array d = array_of(0, 1, 2), e = array_of(1, 1, 1);

    return tsvd_make_plan(handle, &d, &e, given.options, 1, given.plan, error);
}

static tsvd_status
prepare(struct given given, tsvd_error *error)
{
    const tsvd_array d = array_of(0, 1, 2), e = array_of(1, 1, 1);
    tsvd_prepared *prepared;
    tsvd_status status =
        tsvd_prepare(handle, &d, &e, given.options, 0, TSVD_HOST, given.plan, &prepared, error);

    if (status == TSVD_OK) {
        status = tsvd_execute(prepared, numbers[0], numbers[1], NULL, numbers[2], NULL, given.info,
                              error);
    }
    tsvd_prepared_destroy(prepared);
    return status;
}

static tsvd_status
dense_svd(struct given given, tsvd_error *error)
{
    const tsvd_array a = array_of(0, 2, 2), s = array_of(2, 1, 2);

    return tsvd_dense_svd(handle, &a, given.options, NULL, &s, NULL, given.info, error);
}

static tsvd_status
dense_plan(struct given given, tsvd_error *error)
{
    const tsvd_array a = array_of(0, 2, 2);

    return tsvd_dense_plan(handle, &a, given.options, 1, given.plan, error);
}

static tsvd_status
dense_prepare(struct given given, tsvd_error *error)
{
    const tsvd_array a = array_of(0, 2, 2);
    tsvd_prepared *prepared;
    tsvd_status status =
        tsvd_dense_prepare(handle, &a, given.options, 0, TSVD_HOST, given.plan, &prepared, error);

    if (status == TSVD_OK) {
        status =
            tsvd_dense_execute(prepared, numbers[0], NULL, numbers[2], NULL, given.info, error);
    }
    tsvd_prepared_destroy(prepared);
    return status;
}

static tsvd_status
dense_reduce(struct given given, tsvd_error *error)
{
    const tsvd_array a = array_of(0, 2, 2);
    tsvd_reduction *reduction;
    tsvd_status status = tsvd_dense_reduce(handle, &a, given.options, &reduction, error);

    tsvd_reduction_destroy(reduction);
    return status;
}

static tsvd_status
reduction_svd(struct given given, tsvd_error *error)
{
    const tsvd_array a = array_of(0, 2, 2), s = array_of(2, 1, 2);
    tsvd_reduction *reduction;
    tsvd_status status = tsvd_dense_reduce(handle, &a, NULL, &reduction, error);

    if (status == TSVD_OK) {
        status = tsvd_reduction_svd(reduction, given.options, NULL, &s, NULL, given.info, error);
    }
    tsvd_reduction_destroy(reduction);
    return status;
}

static tsvd_status
reduction_apply(struct given given, tsvd_error *error)
{
    const tsvd_array a = array_of(0, 2, 2), x = array_of(2, 2, 2);
    tsvd_reduction *reduction;
    tsvd_status status = tsvd_dense_reduce(handle, &a, NULL, &reduction, error);

    if (status == TSVD_OK) {
        status = tsvd_reduction_apply(reduction, TSVD_LEFT, 0, &x, given.options, error);
    }
    tsvd_reduction_destroy(reduction);
    return status;
}

static tsvd_status
dense_inverse(struct given given, tsvd_error *error)
{
    const tsvd_array a = array_of(0, 2, 2), x = array_of(2, 2, 2);

    return tsvd_dense_inverse(handle, &a, given.options, 0, &x, given.inverse, error);
}

static tsvd_status
inverse_plan(struct given given, tsvd_error *error)
{
    const tsvd_array a = array_of(0, 2, 2);

    return tsvd_inverse_plan(handle, &a, given.options, 0, given.plan, error);
}

static tsvd_status
inverse_prepare(struct given given, tsvd_error *error)
{
    const tsvd_array a = array_of(0, 2, 2);
    tsvd_prepared *prepared;
    tsvd_status status =
        tsvd_inverse_prepare(handle, &a, given.options, 0, TSVD_HOST, given.plan, &prepared, error);

    if (status == TSVD_OK) {
        status = tsvd_inverse_execute(prepared, numbers[0], numbers[2], given.inverse, error);
    }
    tsvd_prepared_destroy(prepared);
    return status;
}

static const struct function {
    const char *name;
    tsvd_status (*call)(struct given given, tsvd_error *error);
    int plan, info, inverse; /* 1: it fills one */
} functions[] = {
    {"svd", svd, 0, 1, 0},
    {"select", select_range, 0, 0, 0},
    {"make_plan", make_plan, 1, 0, 0},
    {"prepare", prepare, 1, 1, 0},
    {"dense_svd", dense_svd, 0, 1, 0},
    {"dense_plan", dense_plan, 1, 0, 0},
    {"dense_prepare", dense_prepare, 1, 1, 0},
    {"dense_reduce", dense_reduce, 0, 0, 0},
    {"reduction_svd", reduction_svd, 0, 1, 0},
    {"reduction_apply", reduction_apply, 0, 0, 0},
    {"dense_inverse", dense_inverse, 0, 0, 1},
    {"inverse_plan", inverse_plan, 1, 0, 0},
    {"inverse_prepare", inverse_prepare, 1, 0, 1},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* Makes a call on a matrix that has an inverse, with a plan if one must be given. */
static tsvd_status
call(const struct function *function, struct given given, tsvd_error *error)
{
    tsvd_plan plan = TSVD_PLAN_INIT;

    memset(numbers, 0, sizeof numbers);
    numbers[0][0] = numbers[0][3] = 1;
    numbers[0][1] = .5;
    given.plan = given.plan != NULL ? given.plan : &plan;
    return function->call(given, error);
}

/* ---- sizes ---- */

/* Bytes of a structure up to the end of a field: for its last one in 0.1, its size there. */
#define BYTES_TO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* Sizes that no version has; `least` is that of 0.1. */
static size_t
wrong_size(int i, size_t least)
{
    const size_t sizes[] = {0, 1, 8, least - 1, BYTES_MOST + 1, SIZE_MAX};

    return sizes[i];
}
enum { WRONG_SIZES = 6 };

static void
check_refused(const char *name, tsvd_status status, const tsvd_error *error, const char *text)
{
    CHECK(status == TSVD_ERR_ARGUMENT && error->status == status && error->matrix == -1 &&
              strstr(error->text, text) != NULL && error->advice[0] != '\0',
          "%s: status %d, %s", name, (int)status, status == TSVD_OK ? "" : error->text);
}

/* Sets the further fields, and what comes after them. */
static void
set_more(unsigned char *bytes, size_t known, int more)
{
    memset(bytes + known, more, MORE);
    memset(bytes + known + MORE, 0xa5, AFTER);
}

/* ---- what is read ---- */

static void
test_options(const struct function *function)
{
    const size_t known = sizeof(tsvd_options);
    struct given given = {NULL, NULL, NULL, NULL};
    later_options options;
    tsvd_error error;

    tsvd_options_init(&options.now, known + MORE);
    given.options = &options.now;
    CHECK(call(function, given, &error) == TSVD_OK, "%s: %s", function->name, error.text);
    for (size_t i = known; i < known + MORE; i++) {
        options.bytes[i] = 1;
        check_refused(function->name, call(function, given, &error), &error, "does not have");
        options.bytes[i] = 0;
    }
    for (int i = 0; i < WRONG_SIZES; i++) {
        options.now.size = wrong_size(i, BYTES_TO(tsvd_options, check_arg));
        check_refused(function->name, call(function, given, &error), &error, "not initialised");
    }
}

static void
test_config(void)
{
    const size_t known = sizeof(tsvd_config);
    later_config config;
    tsvd_handle *made = NULL;
    tsvd_error error;
    char file[64];

    tsvd_config_init(&config.now, known + MORE);
    CHECK(tsvd_create(&config.now, &made, &error) == TSVD_OK, "%s", error.text);
    tsvd_destroy(made);
    for (size_t i = known; i < known + MORE; i++) {
        config.bytes[i] = 0x80;
        check_refused("create", tsvd_create(&config.now, &made, &error), &error, "does not have");
        CHECK(made == NULL, "a handle");
        check_refused("cuda_blas", tsvd_cuda_blas(&config.now, 1, file, sizeof file, &error),
                      &error, "does not have");
        config.bytes[i] = 0;
    }
    CHECK(tsvd_cuda_blas(&config.now, 1, file, sizeof file, &error) != TSVD_ERR_ARGUMENT, "%s",
          error.text);
    for (int i = 0; i < WRONG_SIZES; i++) {
        config.now.size = wrong_size(i, BYTES_TO(tsvd_config, library_path_count));
        check_refused("create", tsvd_create(&config.now, &made, &error), &error, "not initialised");
        check_refused("cuda_blas", tsvd_cuda_blas(&config.now, 1, file, sizeof file, &error),
                      &error, "not initialised");
    }
}

static void
test_blas(void)
{
    const size_t known = sizeof(tsvd_blas);
    later_blas blas;
    tsvd_handle *made = NULL;
    tsvd_config config;
    tsvd_error error;

    tsvd_config_init(&config, sizeof config);
    config.blas = &blas.now;
    blas.now = plain_blas(4);
    blas.now.size = known + MORE;
    set_more(blas.bytes, known, 0);
    CHECK(tsvd_create(&config, &made, &error) == TSVD_OK, "%s", error.text);
    CHECK(tsvd_set_blas(made, &blas.now, &error) == TSVD_OK, "%s", error.text);
    tsvd_destroy(made);
    set_more(blas.bytes, known, 0xff);
    check_refused("create", tsvd_create(&config, &made, &error), &error, "does not have");
    check_refused("set_blas", tsvd_set_blas(handle, &blas.now, &error), &error, "does not have");
    for (int i = 0; i < WRONG_SIZES; i++) {
        blas.now.size = wrong_size(i, BYTES_TO(tsvd_blas, cgemm64));
        check_refused("create", tsvd_create(&config, &made, &error), &error, "not initialised");
        check_refused("set_blas", tsvd_set_blas(handle, &blas.now, &error), &error,
                      "not initialised");
    }
}

/* ---- what is filled ---- */

/* Makes a call with a structure of a later version, and with those of no version. */
static void
check_filled(const struct function *function, struct given given, unsigned char *bytes,
             size_t known, size_t least)
{
    size_t size = known + MORE, filled = 0;
    unsigned char as_given[sizeof(later_info)];
    tsvd_error error;

    memset(bytes, 0xa5, known + MORE + AFTER);
    memcpy(bytes, &size, sizeof size);
    CHECK(call(function, given, &error) == TSVD_OK, "%s: %s", function->name, error.text);
    CHECK(memcmp(bytes, &size, sizeof size) == 0, "%s has changed the size", function->name);
    for (size_t i = sizeof size; i < known; i++) {
        filled += bytes[i] != 0xa5;
    }
    CHECK(filled > (known - sizeof size) / 2, "%s has filled %zu bytes", function->name, filled);
    for (size_t i = known; i < known + MORE + AFTER; i++) {
        CHECK(bytes[i] == (i < known + MORE ? 0 : 0xa5), "%s: byte %zu is %d", function->name, i,
              bytes[i]);
    }
    for (int i = 0; i < WRONG_SIZES; i++) {
        size = wrong_size(i, least);
        memset(bytes, 0xa5, known + MORE + AFTER);
        memcpy(bytes, &size, sizeof size);
        memcpy(as_given, bytes, known + MORE + AFTER);
        check_refused(function->name, call(function, given, &error), &error, "not initialised");
        CHECK(memcmp(bytes, as_given, known + MORE + AFTER) == 0, "%s has written", function->name);
    }
}

static void
test_filled(const struct function *function)
{
    const struct given none = {NULL, NULL, NULL, NULL};
    later_plan plan;
    later_info info;
    later_inverse_info inverse;
    struct given given;

    if (function->plan) {
        given = none;
        given.plan = &plan.now;
        check_filled(function, given, plan.bytes, sizeof plan.now,
                     BYTES_TO(tsvd_plan, device_bytes));
    }
    if (function->info) {
        given = none;
        given.info = &info.now;
        check_filled(function, given, info.bytes, sizeof info.now,
                     BYTES_TO(tsvd_info, seconds_total));
    }
    if (function->inverse) {
        given = none;
        given.inverse = &inverse.now;
        check_filled(function, given, inverse.bytes, sizeof inverse.now,
                     BYTES_TO(tsvd_inverse_info, seconds_total));
    }
}

/* ---- defaults ---- */

/* Writes no byte beyond `size`, and zeroes what this version does not know. */
static void
test_init(void)
{
    later_options options, whole;
    later_config config, whole_config;

    tsvd_options_init(NULL, sizeof(tsvd_options));
    tsvd_config_init(NULL, sizeof(tsvd_config));
    tsvd_options_init(&whole.now, sizeof whole);
    tsvd_config_init(&whole_config.now, sizeof whole_config);
    for (size_t size = 0; size <= sizeof options; size++) {
        memset(&options, 0xa5, sizeof options);
        memcpy(&whole, &size, sizeof size);
        tsvd_options_init(&options.now, size);
        CHECK(memcmp(&options, &whole, size) == 0, "%zu bytes of options", size);
        for (size_t i = size; i < sizeof options; i++) {
            CHECK(options.bytes[i] == 0xa5, "%zu bytes of options: byte %zu", size, i);
        }
    }
    for (size_t size = 0; size <= sizeof config; size++) {
        memset(&config, 0xa5, sizeof config);
        memcpy(&whole_config, &size, sizeof size);
        tsvd_config_init(&config.now, size);
        CHECK(memcmp(&config, &whole_config, size) == 0, "%zu bytes of config", size);
        for (size_t i = size; i < sizeof config; i++) {
            CHECK(config.bytes[i] == 0xa5, "%zu bytes of config: byte %zu", size, i);
        }
    }
    for (size_t i = sizeof(tsvd_options); i < sizeof whole; i++) {
        CHECK(whole.bytes[i] == 0, "byte %zu of options", i);
    }
}

int
main(void)
{
    CHECK(tsvd_create(NULL, &handle, NULL) == TSVD_OK, "no handle");
    use_blas(handle, 4);
    for (int i = 0; i < FUNCTIONS; i++) {
        test_options(&functions[i]);
        test_filled(&functions[i]);
    }
    test_config();
    test_blas();
    test_init();
    tsvd_destroy(handle);
    return report();
}
