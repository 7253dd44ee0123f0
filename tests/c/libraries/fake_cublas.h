/*
 * What the fake cuBLAS tells the test.
 */
#ifndef TSVD_TESTS_FAKE_CUBLAS_H
#define TSVD_TESTS_FAKE_CUBLAS_H

struct fake_cublas {
    int created, destroyed;    /* handles */
    int create_status, status; /* that cublasCreate and the products answer with */
    const void *stream;        /* of the handle that multiplied last */
};

extern struct fake_cublas fake_cublas;

#endif
