/*
 * TSVD_API marks what the library exports; all else is hidden.
 */
#ifndef TSVD_EXPORT_H
#define TSVD_EXPORT_H

#if defined(__GNUC__)
#define TSVD_API __attribute__((visibility("default")))
#else
#define TSVD_API
#endif

#endif
