/*
 * Structures that grow; see growing.h.
 */
#include "api/growing.h"

#include <string.h>

#include "host/host.h"

/* No version has a larger structure: such a size is of one that was not initialised. */
#define SIZE_MOST 4096

/* Bytes of a structure up to the end of a field. */
#define BYTES_TO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* One of the structures. */
struct growing {
    const char *name;  /* in errors */
    const char *start; /* what helps where it is not initialised */
    size_t least;      /* bytes to the end of its last field in version 0.1 */
    size_t size;       /* bytes in this version */
};

static const struct growing of_config = {
    "config",
    "initialise it by tsvd_config_init()",
    BYTES_TO(tsvd_config, library_path_count),
    sizeof(tsvd_config),
};
static const struct growing of_options = {
    "options",
    "initialise it by tsvd_options_init()",
    BYTES_TO(tsvd_options, check_arg),
    sizeof(tsvd_options),
};
static const struct growing of_blas = {
    "blas",
    "initialise it by TSVD_BLAS_INIT",
    BYTES_TO(tsvd_blas, cgemm64),
    sizeof(tsvd_blas),
};
static const struct growing of_plan = {
    "plan",
    "initialise it by TSVD_PLAN_INIT",
    BYTES_TO(tsvd_plan, device_bytes),
    sizeof(tsvd_plan),
};
static const struct growing of_info = {
    "info",
    "initialise it by TSVD_INFO_INIT",
    BYTES_TO(tsvd_info, seconds_total),
    sizeof(tsvd_info),
};
static const struct growing of_inverse_info = {
    "info",
    "initialise it by TSVD_INVERSE_INFO_INIT",
    BYTES_TO(tsvd_inverse_info, seconds_total),
    sizeof(tsvd_inverse_info),
};

/* The size that a structure begins with. */
static size_t
size_in(const void *given)
{
    size_t size;

    memcpy(&size, given, sizeof size);
    return size;
}

static tsvd_status
check_size(const struct growing *of, const void *given, tsvd_error *error)
{
    const size_t size = size_in(given);

    if (size >= of->least && size <= SIZE_MOST) {
        return TSVD_OK;
    }
    tsvdi_advise(error, of->start);
    return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                      "%s.size is %zu, which no version of tsvd.h makes it: the structure is not "
                      "initialised",
                      of->name, size);
}

/* Copies what is given over the defaults in *own. */
static tsvd_status
take(const struct growing *of, const void *given, void *own, tsvd_error *error)
{
    const unsigned char *from = given;
    const size_t size = size_in(given);
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(check_size(of, given, error));
    for (size_t i = of->size; i < size; i++) {
        if (from[i] != 0) {
            tsvdi_advise(error, "leave new fields as they are, or use a newer tsvd");
            return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                              "%s has %zu bytes and this is tsvd %s, which knows %zu: the others "
                              "are not zero, so the program asks for what this version does not "
                              "have",
                              of->name, size, TSVD_VERSION, of->size);
        }
    }
    memcpy(own, given, size < of->size ? size : of->size);
    memcpy(own, &of->size, sizeof of->size);
out:
    return ret;
}

/* Copies *own to `size` bytes, with zeros where it has no more. */
static void
give(const void *own, size_t own_size, void *to, size_t size)
{
    const size_t common = size < own_size ? size : own_size;

    memcpy(to, own, common);
    memset((char *)to + common, 0, size - common);
}

/* The same for what a call has filled, if it is wanted; its size stays. */
static void
give_filled(void *own, size_t own_size, void *given)
{
    if (given != NULL) {
        const size_t size = size_in(given);

        memcpy(own, &size, sizeof size);
        give(own, own_size, given, size);
    }
}

/* ---- what is read ---- */

static tsvd_config
default_config(void)
{
    tsvd_config config;

    memset(&config, 0, sizeof config);
    config.size = sizeof config;
    config.device = TSVD_DEVICE_CPU;
    return config;
}

static tsvd_options
default_options(void)
{
    tsvd_options options;

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.method = TSVD_METHOD_AUTO;
    options.count = -1;
    options.eps = -1;
    options.check_finite = 1;
    options.givens_split = 1;
    options.fallback = 1;
    return options;
}

void
tsvd_config_init(tsvd_config *config, size_t size)
{
    tsvd_config defaults = default_config();

    defaults.size = size;
    if (config != NULL) {
        give(&defaults, sizeof defaults, config, size);
    }
}

void
tsvd_options_init(tsvd_options *options, size_t size)
{
    tsvd_options defaults = default_options();

    defaults.size = size;
    if (options != NULL) {
        give(&defaults, sizeof defaults, options, size);
    }
}

tsvd_status
tsvdi_take_config(const tsvd_config *given, tsvd_config *own, tsvd_error *error)
{
    *own = default_config();
    return given == NULL ? TSVD_OK : take(&of_config, given, own, error);
}

tsvd_status
tsvdi_take_options(const tsvd_options *given, tsvd_options *own, tsvd_error *error)
{
    *own = default_options();
    return given == NULL ? TSVD_OK : take(&of_options, given, own, error);
}

tsvd_status
tsvdi_take_blas(const tsvd_blas *given, tsvd_blas *own, tsvd_error *error)
{
    memset(own, 0, sizeof *own);
    return take(&of_blas, given, own, error);
}

/* ---- what is filled ---- */

tsvd_status
tsvdi_begin_plan(const tsvd_plan *given, tsvd_plan *own, tsvd_error *error)
{
    tsvdi_error_clear(error);
    memset(own, 0, sizeof *own);
    return given == NULL ? TSVD_OK : check_size(&of_plan, given, error);
}

tsvd_status
tsvdi_begin_info(const tsvd_info *given, tsvd_info *own, tsvd_error *error)
{
    tsvdi_error_clear(error);
    memset(own, 0, sizeof *own);
    return given == NULL ? TSVD_OK : check_size(&of_info, given, error);
}

tsvd_status
tsvdi_begin_inverse_info(const tsvd_inverse_info *given, tsvd_inverse_info *own, tsvd_error *error)
{
    tsvdi_error_clear(error);
    memset(own, 0, sizeof *own);
    own->matrix = -1;
    return given == NULL ? TSVD_OK : check_size(&of_inverse_info, given, error);
}

void
tsvdi_end_plan(tsvd_plan *given, tsvd_plan *own)
{
    give_filled(own, sizeof *own, given);
}

void
tsvdi_end_info(tsvd_info *given, tsvd_info *own)
{
    give_filled(own, sizeof *own, given);
}

void
tsvdi_end_inverse_info(tsvd_inverse_info *given, tsvd_inverse_info *own)
{
    give_filled(own, sizeof *own, given);
}
