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

/* Takes what is given, or copies it over the defaults in *own, which has a size already. */
static tsvd_status
take(const struct growing *of, const void *given, void *own, const void **taken, tsvd_error *error)
{
    const size_t size = size_in(given);
    tsvd_status ret = TSVD_OK;

    *taken = given;
    if (size == of->size) { /* nothing is copied: calls may be short */
        return TSVD_OK;
    }
    TSVD_TRY(check_size(of, given, error));
    for (size_t i = of->size; i < size; i++) {
        if (((const unsigned char *)given)[i] != 0) {
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
    *taken = own;
out:
    return ret;
}

/* Zeroes `size` bytes but for the size, which they begin with. */
static void
clear(void *structure, size_t size)
{
    memset((char *)structure + sizeof size, 0, size - sizeof size);
}

/* Refuses what is given, or zeroes it. */
static tsvd_status
begin(const struct growing *of, void *given, tsvd_error *error)
{
    tsvd_status ret = TSVD_OK;

    tsvdi_error_clear(error);
    if (given != NULL) {
        TSVD_TRY(check_size(of, given, error));
        clear(given, size_in(given));
    }
out:
    return ret;
}

/* Chooses what is filled: what is given, if it has all fields, or *own. */
static void *
filled_of(const struct growing *of, void *given, void *own)
{
    if (given != NULL && size_in(given) == of->size) {
        return given;
    }
    clear(own, of->size);
    return own;
}

/* Copies all but the size, as far as it fits; begin() has zeroed the rest. */
static void
end(const struct growing *of, void *given, const void *filled)
{
    if (given != NULL && given != filled) {
        const size_t size = size_in(given), common = size < of->size ? size : of->size;

        memcpy((char *)given + sizeof size, (const char *)filled + sizeof size,
               common - sizeof size);
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

/* Copies defaults to `size` bytes, with zeros where there is no more. */
static void
give_defaults(const void *defaults, size_t defaults_size, void *to, size_t size)
{
    const size_t common = size < defaults_size ? size : defaults_size;

    if (to != NULL) {
        memcpy(to, defaults, common);
        memset((char *)to + common, 0, size - common);
    }
}

void
tsvd_config_init(tsvd_config *config, size_t size)
{
    tsvd_config defaults = default_config();

    defaults.size = size;
    give_defaults(&defaults, sizeof defaults, config, size);
}

void
tsvd_options_init(tsvd_options *options, size_t size)
{
    tsvd_options defaults = default_options();

    defaults.size = size;
    give_defaults(&defaults, sizeof defaults, options, size);
}

tsvd_status
tsvdi_take_config(const tsvd_config *given, tsvd_config *own, const tsvd_config **taken,
                  tsvd_error *error)
{
    const void *structure = own;
    tsvd_status ret = TSVD_OK;

    if (given == NULL || given->size != sizeof *given) {
        *own = default_config();
    }
    TSVD_TRY(given != NULL ? take(&of_config, given, own, &structure, error) : TSVD_OK);
    *taken = structure;
out:
    return ret;
}

tsvd_status
tsvdi_take_options(const tsvd_options *given, tsvd_options *own, const tsvd_options **taken,
                   tsvd_error *error)
{
    const void *structure = own;
    tsvd_status ret = TSVD_OK;

    if (given == NULL || given->size != sizeof *given) {
        *own = default_options();
    }
    TSVD_TRY(given != NULL ? take(&of_options, given, own, &structure, error) : TSVD_OK);
    *taken = structure;
out:
    return ret;
}

tsvd_status
tsvdi_take_blas(const tsvd_blas *given, tsvd_blas *own, const tsvd_blas **taken, tsvd_error *error)
{
    const void *structure;
    tsvd_status ret = TSVD_OK;

    memset(own, 0, sizeof *own);
    TSVD_TRY(take(&of_blas, given, own, &structure, error));
    *taken = structure;
out:
    return ret;
}

/* ---- what is filled ---- */

tsvd_status
tsvdi_begin_plan(tsvd_plan *given, tsvd_error *error)
{
    return begin(&of_plan, given, error);
}

tsvd_status
tsvdi_begin_info(tsvd_info *given, tsvd_info *own, tsvd_info **filled, tsvd_error *error)
{
    *filled = filled_of(&of_info, given, own);
    return begin(&of_info, given, error);
}

tsvd_status
tsvdi_begin_inverse_info(tsvd_inverse_info *given, tsvd_inverse_info *own,
                         tsvd_inverse_info **filled, tsvd_error *error)
{
    const tsvd_status ret = begin(&of_inverse_info, given, error);

    *filled = filled_of(&of_inverse_info, given, own);
    if (ret == TSVD_OK) {
        (*filled)->matrix = -1;
    }
    return ret;
}

void
tsvdi_end_plan(tsvd_plan *given, const tsvd_plan *made)
{
    end(&of_plan, given, made);
}

void
tsvdi_end_info(tsvd_info *given, const tsvd_info *filled)
{
    end(&of_info, given, filled);
}

void
tsvdi_end_inverse_info(tsvd_inverse_info *given, const tsvd_inverse_info *filled)
{
    end(&of_inverse_info, given, filled);
}
