#!/usr/bin/env bash
# Builds and installs tsvd, runs the tests of CUDA and measures on the GPU of this machine.
# Fills the folder given (build/gpu) with logs and result files, and prints a summary.
# A part that fails does not keep the next from running; the exit status tells in the end.
#
# Needs python3 with the extra "gpu" and what the build requires (pyproject.toml), nvcc, CMake
# and Ninja.
# Where there is no git repository, TSVD_CSRC_TREE and TSVD_CUDA_TREE may name the sources:
# git rev-parse HEAD:csrc HEAD:cuda
set -u
cd "$(dirname "$0")/.." || exit
out=${1:-build/gpu}
mkdir -p "$out" || exit
export SKBUILD_BUILD_DIR=${SKBUILD_BUILD_DIR:-build/python}
status=0
summary=()

# part NAME COMMAND...: runs it, with its output in NAME.log, whose end is shown if it fails
part() {
    local name=$1 start=$SECONDS result=ok
    shift
    printf '%s ...\n' "$name"
    "$@" >"$out/$name.log" 2>&1 || {
        result="failed ($?)"
        status=1
        tail -n 20 "$out/$name.log"
    }
    summary+=("$(printf '%-7s%-14s%5d s' "$name" "$result" $((SECONDS - start)))")
}

part build python3 -m pip install --no-build-isolation --no-deps \
    -C cmake.define.TSVD_CUDA=ON .
part ctest bash -c 'cmake --preset gpu && cmake --build --preset gpu && ctest --preset gpu'
part tests python3 -m pytest -m cuda --require-cuda -q
part gpu python3 -m benchmarks gpu -o "$out/gpu.json" --tests "$out/tests.log"
part seed python3 -m benchmarks seed --device cuda -o "$out/seed_cuda.json"

printf '\n=== tests\n'
tail -n 1 "$out/tests.log"
printf '\n=== gpu\n'
cat "$out/gpu.log"
printf '\n=== logs and results: %s\n' "$out"
printf '%s\n' "${summary[@]}"
exit $status
