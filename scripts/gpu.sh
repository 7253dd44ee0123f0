#!/usr/bin/env bash
# Builds and installs tsvd, runs the CUDA tests and the benchmarks on the GPU of this machine.
#
#     scripts/gpu.sh [FOLDER [PART...]]
#
# Writes the log of each part and its result file to FOLDER (build/gpu), and prints a summary.
# Parts run in the given order. If a part fails, the next ones still run, and the exit status is 1.
# Without PART those marked * run. They take about twenty minutes on one H200.
#
#     build     * installs tsvd                                                         1 min
#     ctest       the C tests with the preset gpu                                       1 min
#     tests     * the CUDA tests, but those of sanitize                               6.5 min
#     sanitize    each tool of compute-sanitizer on calls that take every road         20 min
#     vectors   * divide and conquer against peers, floors and targets                2.5 min
#     values    * up to a million singular values without vectors                       1 min
#     select    * the largest values with vectors, against all values                0.25 min
#     batch     * many small matrices, against PyTorch                               0.75 min
#     transfers * results on the way to the host; arrays that stay on the device     0.5 min
#     twisted   * twisted factorisations beside divide and conquer                    1.5 min
#     dense     * dense matrices, against cuSOLVER                                      4 min
#     stages    * large dense matrices in two stages, and the seconds of each           2.5 min
#     jacobi    * one-sided Jacobi, against cuSOLVER's                                  3 min
#     inverse   * inverses, against PyTorch                                           0.5 min
#     small     * small dense matrices, against PyTorch                                 1 min
#     solutions * pseudo-inverses, least squares and ranks, against PyTorch           0.5 min
#     pytorch   * torch.linalg.svd with tsvd.torch.enable() and without               2 min
#     complex   * complex matrices, against cuSOLVER, PyTorch and real ones             2 min
#     eps       * the time that a looser eps saves                                   0.25 min
#     extra     * n x (n+1) bidiagonal matrices, against square ones                 0.25 min
#     sharded     batches that are sharded over two GPUs, in JAX                      0.5 min
#     several     one call on all GPUs of the host, beside one of them                  2 min
#     wheels      the wheel of the CPU and the device library, without nvcc on the path   2 min
#     sweep       cliffs: times over sizes in steps of 1.2                               5 min
#     cube        values of dense matrices up to n = 40,960, against the cube            5 min
#     tiny        a hundred million matrices of order 2 to 8, checked on the device     2 min
#     stress    * random draws, each checked (TSVD_STRESS_SEED: random seed, 0)         4 min
#     staged      in two stages: random draws, and the search for the worst              8 min
#     attack      on the CPU: random draws, small matrices, the search for the worst     8 min
#     crossover   the orders from which on one method or device is faster             1.5 min
#     gpu         the pipeline of Givens rotations against time limits                0.5 min
#     published   the published tables: Givens rotations, dense, Jacobi, inverses       2 min
#     checksums   whether an older installation computes the same bits                  3 min
#     against     its times beside ours                                                 3 min
#
# TSVD_OLD names the folder of the older installation, as made by
#     pip install --target FOLDER --no-deps --no-build-isolation OLD_SOURCES
# and TSVD_OLD_CSRC_TREE and TSVD_OLD_CUDA_TREE may name its sources.
#
# It needs nvcc, CMake, Ninja, and a python3 with the packages of the extra "gpu" and those that
# the build requires (pyproject.toml).
# TSVD_TEST_PROCESSES: processes of the CUDA tests where pytest-xdist is installed, 6 by default.
# Outside a git repository TSVD_CSRC_TREE and TSVD_CUDA_TREE may name the sources:
# git rev-parse HEAD:csrc HEAD:cuda
set -u
cd "$(dirname "$0")/.." || exit
out=${1:-build/gpu}
parts=("${@:2}")
[ ${#parts[@]} -gt 0 ] || parts=(build tests vectors values select batch transfers twisted dense stages jacobi inverse small solutions pytorch complex eps extra stress)
mkdir -p "$out" || exit
export SKBUILD_BUILD_DIR=${SKBUILD_BUILD_DIR:-build/python}
export PYTHONUNBUFFERED=1
status=0
summary=()

benchmark() {
    python3 -m benchmarks "$@"
}

compare() {
    python3 -m tools.compare "$@"
}

verify() {
    python3 -m verification "$@"
}

# Of the sources of the older installation.
old_csrc=${TSVD_OLD_CSRC_TREE:-unknown}
old_cuda=${TSVD_OLD_CUDA_TREE:-unknown}

need_old() {
    [ -n "${TSVD_OLD:-}" ] && [ -d "$TSVD_OLD/tsvd" ] && return
    echo "TSVD_OLD must name a folder that holds an older tsvd (see the head of scripts/gpu.sh)"
    return 2
}

checksums() {
    compare checksums --device cuda -o "$out/checksums.json" &&
        PYTHONPATH=$TSVD_OLD${PYTHONPATH:+:$PYTHONPATH} \
            TSVD_CSRC_TREE=$old_csrc TSVD_CUDA_TREE=$old_cuda \
            compare checksums --device cuda -o "$out/checksums_old.json" &&
        compare checksums --compare "$out/checksums_old.json" "$out/checksums.json"
}

# One run of the verification on the CPU, and the seconds it took.
attack_by() {
    local begin=$SECONDS result=0
    verify "${@:2}" --seed "${TSVD_STRESS_SEED:-0}" -o "$out/$1.json" || result=$?
    printf '\n%s: %d s, exit status %d\n\n' "$1" $((SECONDS - begin)) $result
    return $result
}

# The evolutionary search has no end of its own: it takes what is left of eight minutes.
attack() {
    local begin=$SECONDS failed=0 left
    attack_by stress_small_cpu small 3000000 --seconds 120 || failed=1
    attack_by stress_cpu draws 200000 --seconds 330 || failed=1
    left=$((450 - SECONDS + begin))
    attack_by stress_evolve_cpu evolve 1000000000 --seconds $((left > 30 ? left : 30)) || failed=1
    return $failed
}

# Draws of all methods, and as many by twisted factorisations.
stress() {
    local failed=0
    verify draws 50000 --device cuda --seconds 200 \
        --seed "${TSVD_STRESS_SEED:-0}" -o "$out/stress_cuda.json" || failed=1
    verify draws 50000 --device cuda --method twisted --seconds 200 \
        --seed "${TSVD_STRESS_SEED:-0}" -o "$out/stress_twisted_cuda.json" || failed=1
    return $failed
}

# No draw begins after five minutes, and no climb after 100 seconds more.  What is over a bound is
# then measured in extended precision, which takes a minute.
staged() {
    local failed=0
    verify dense 5000 --stages 2 --device cuda --seconds 300 \
        --seed "${TSVD_STRESS_SEED:-0}" -o "$out/stress_stages_2_cuda.json" || failed=1
    verify evolve 1000000000 --target stages --device cuda --seconds 100 --threads 4 \
        --seed "${TSVD_STRESS_SEED:-0}" -o "$out/stress_evolve_stages_cuda.json" || failed=1
    return $failed
}

# By several processes if pytest-xdist is there.  With all threads each they would hinder one
# another.  Each test has a line in the log, so that also a run that is stopped tells which failed.
cuda_tests() {
    local many=() tests=(--require-cuda -v --ignore tests/test_compute_sanitizer.py) failed=0
    if python3 -c 'import xdist' 2>/dev/null; then
        many=(-n "${TSVD_TEST_PROCESSES:-6}" -p no:benchmark)
        export OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=1
    fi
    python3 -m pytest -m 'cuda and alone' "${tests[@]}" || failed=1
    python3 -m pytest -m 'cuda and not alone' "${tests[@]}" "${many[@]}" || failed=1
    return $failed
}

# Both wheels, side by side in a folder, and the tests of CUDA's main roads with them.  This machine's
# packages serve as the environment: it may have no network.
wheels() {
    local made major python bare=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    made=$(cd "$out" && pwd)/wheels
    python=$(command -v python3)
    rm -rf "$made" && mkdir -p "$made" || return
    major=$(PATH=$PATH:/usr/local/cuda/bin nvcc --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
    CMAKE_ARGS=-DTSVD_CUDA=OFF SKBUILD_BUILD_DIR=$made/cpu python3 -m pip wheel --quiet \
        --no-build-isolation --no-deps -w "$made" . &&
        CUDAARCHS=native SKBUILD_BUILD_DIR=$made/cuda python3 -m pip wheel --quiet \
            --no-build-isolation --no-deps -w "$made" "./packaging/cuda$major" &&
        python3 -m pip install --quiet --no-deps --no-index --target "$made/site" "$made"/*.whl &&
        ls -l "$made"/*.whl || return
    export PYTHONPATH=$made/site PATH=$bare
    ! command -v nvcc || return
    "$python" - <<'CHECK' && "$python" -m pytest -q -m 'cuda and not alone' --require-cuda \
        tests/test_libraries.py tests/test_arguments.py tests/test_device_arrays_cuda.py
import doctest

import numpy as np

import tsvd
from tsvd import linalg

tsvd.show_config()
assert "tsvd_cuda" in tsvd.show_config(mode="dicts")["CUDA"]["device library"]
failed, tried = doctest.testfile("README.md", module_relative=False)
assert tried and not failed
A = np.random.default_rng(0).standard_normal((2000, 1500))
(U, S, Vh), info = linalg.svd(A, full_matrices=False, device="cuda", full_output=True)
error = abs(A - U * S @ Vh).max() / S[0]
print(f"{info.method} on {info.device}: {info.seconds['total']:.3f} s, error {error:.1e}")
assert error < 1e-13 and tsvd.devices()[1].device == info.device == "cuda:0"
CHECK
}

run_part() {
    case $1 in
    build) python3 -m pip install --no-build-isolation --no-deps \
        -C cmake.define.TSVD_CUDA=ON . ;;
    ctest) cmake --preset gpu && cmake --build --preset gpu && ctest --preset gpu ;;
    tests) cuda_tests ;;
    sanitize) python3 -m pytest -m cuda --require-cuda -v tests/test_compute_sanitizer.py ;;
    vectors) benchmark vectors -o "$out/vectors.json" ;;
    values) benchmark values -o "$out/values.json" ;;
    select) benchmark select -o "$out/select.json" ;;
    batch) benchmark batch -o "$out/batch.json" ;;
    transfers) benchmark transfers -o "$out/transfers.json" ;;
    twisted) benchmark twisted -o "$out/twisted.json" ;;
    dense) benchmark dense --device cuda -o "$out/dense.json" ;;
    stages) benchmark stages -o "$out/stages.json" ;;
    jacobi) benchmark jacobi --device cuda -o "$out/jacobi.json" ;;
    inverse) benchmark inverse --device cuda -o "$out/inverse.json" ;;
    small) benchmark small --device cuda -o "$out/small.json" ;;
    solutions) benchmark solutions --device cuda -o "$out/solutions.json" ;;
    pytorch) benchmark pytorch --device cuda -o "$out/pytorch.json" ;;
    sharded) benchmark sharded --device cuda -o "$out/sharded.json" ;;
    several) benchmark several --device cuda -o "$out/several.json" ;;
    complex) benchmark complex --device cuda -o "$out/complex.json" ;;
    eps) benchmark eps --device cuda -o "$out/eps_cuda.json" ;;
    extra) benchmark extra --device cuda -o "$out/extra.json" ;;
    wheels) wheels ;;
    sweep) benchmark sweep --device cuda -o "$out/sweep_cuda.json" ;;
    cube) benchmark sweep --device cuda --group cube -o "$out/cube_cuda.json" ;;
    stress) stress ;;
    tiny) verify tiny 100000000 --device cuda -o "$out/stress_tiny_cuda.json" ;;
    staged) staged ;;
    attack) attack ;;
    crossover) benchmark crossover --device cuda --repeats 3 -o "$out/crossover_cuda.json" ;;
    gpu)
        local tests=()
        [ ! -f "$out/tests.log" ] || tests=(--tests "$out/tests.log")
        benchmark gpu -o "$out/gpu.json" "${tests[@]}"
        ;;
    published) python3 -m tools.published --device cuda -o "$out/published_cuda.json" ;;
    checksums) need_old && checksums ;;
    against) need_old && compare against --device cuda --old "$TSVD_OLD" \
        --old-trees "$old_csrc" "$old_cuda" -o "$out/against_cuda.json" ;;
    *) echo "unknown part: $1" && return 2 ;;
    esac
}

for name in "${parts[@]}"; do
    start=$SECONDS
    result=ok
    printf '%s ...\n' "$name"
    (run_part "$name") >"$out/$name.log" 2>&1 || {
        result="failed ($?)"
        status=1
        tail -n 20 "$out/$name.log"
    }
    summary+=("$(printf '%-11s%-14s%5d s' "$name" "$result" $((SECONDS - start)))")
done

for name in "${parts[@]}"; do
    case $name in
    tests) printf '\n=== tests\n' && grep -a '^FAILED' "$out/tests.log"; tail -n 1 "$out/tests.log" ;;
    vectors | values | select | batch | transfers | twisted | dense | stages | jacobi | inverse | small | solutions | pytorch | sharded | several | complex | eps | extra | wheels | sweep | cube | tiny | stress | staged | attack | crossover | gpu | checksums | against)
        printf '\n=== %s\n' "$name" && cat "$out/$name.log"
        ;;
    esac
done
printf '\n=== logs and results: %s\n' "$out"
printf '%s\n' "${summary[@]}"
exit $status
