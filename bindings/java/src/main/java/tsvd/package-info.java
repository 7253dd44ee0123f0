/**
 * Singular value decompositions on the CPU and on NVIDIA GPUs, by the C library tsvd.
 *
 * <p>{@link tsvd.Svd} decomposes bidiagonal and dense matrices, {@link tsvd.Inverse} inverts dense
 * ones. {@link tsvd.Options} say what is wanted, {@link tsvd.NDArray} where numbers lie, and a
 * {@link tsvd.Handle} keeps memory between calls. What the library reports is a
 * {@link tsvd.TsvdException}. Arguments that Java refuses itself, such as numbers that are fewer
 * than a shape has, are an IllegalArgumentException; a closed handle is an IllegalStateException.
 */
package tsvd;
