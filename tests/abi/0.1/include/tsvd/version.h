/*
 * The version of the headers; tsvd_version() tells that of the library.
 */
#ifndef TSVD_VERSION_H
#define TSVD_VERSION_H

#define TSVD_VERSION_MAJOR 0
#define TSVD_VERSION_MINOR 1
#define TSVD_VERSION_PATCH 0
#define TSVD_VERSION "0.1.0"

#endif
