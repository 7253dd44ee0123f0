package tsvd;

/**
 * What a call has done, summed over the batch.
 *
 * @param method the method that ran
 * @param sweeps passes over a matrix or a part of it; givens: half sweeps
 * @param iterations givens: loop steps of all threads of the pipeline; qr: steps of all sweeps;
 *     bisect: Sturm counts
 * @param iterationsSaved givens: empty steps among them, left out by splitting
 * @param rotations Givens rotations made, right and left together
 * @param deflated off-diagonal entries set to zero; dc: deflated values
 * @param refused twisted: values that failed a check, so that dc took their matrix
 * @param seconds of the whole call within the library
 */
public record Info(Method method, long sweeps, long iterations, long iterationsSaved,
        long rotations, long deflated, long refused, double seconds) {
}
