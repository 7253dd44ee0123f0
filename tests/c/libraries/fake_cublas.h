/*
 * What the fake cuBLAS tells the test.
 */
#ifndef TSVD_TESTS_FAKE_CUBLAS_H
#define TSVD_TESTS_FAKE_CUBLAS_H

struct fake_cublas {
    int created, destroyed;    /* number of handles */
    int create_status, status; /* what cublasCreate() and the products return */
    const void *stream;        /* stream of the handle that multiplied last */
};

extern struct fake_cublas fake_cublas;

#endif
