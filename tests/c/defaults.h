/*
 * Options and configurations with the default of every field.
 */
#ifndef TSVD_TESTS_DEFAULTS_H
#define TSVD_TESTS_DEFAULTS_H

#include "check.h"
#include "tsvd/tsvd.h"

UNUSED static tsvd_options
default_options(void)
{
    tsvd_options options;

    tsvd_options_init(&options, sizeof(options));
    return options;
}

UNUSED static tsvd_config
default_config(void)
{
    tsvd_config config;

    tsvd_config_init(&config, sizeof(config));
    return config;
}

#endif
