#!/usr/bin/env bash
# Builds with each compiler that is here, warnings as errors, and runs the C tests: for the CPU.
# `make compilers` runs this.  It takes minutes for each, and is not part of .ci/run.
#
#     scripts/compilers.sh [COMPILER...]
#
# By default gcc-11 to gcc-14, clang-14 to clang-19 and musl-gcc, as far as they are on PATH, and
# gcc-static: gcc, and programs without any shared library.  A compiler needs an OpenMP runtime:
# LDFLAGS may say where the one for musl is, as musl-gcc has none of its own.
#
# It needs cmake and ninja.
set -euo pipefail
cd "$(dirname "$0")/.."
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-2}
export OMP_WAIT_POLICY=passive # the tests run two at a time
work=build/compilers
mkdir -p $work

compilers=("$@")
[ $# -gt 0 ] || compilers=(gcc-{11..14} clang-{14..19} musl-gcc gcc-static)

rows=() failed=0
row() {
    rows+=("$(printf '%-12s %-24s %s' "$@")")
    echo "${rows[-1]}"
}

for name in "${compilers[@]}"; do
    compiler=$name options=() but='^$'
    if [ "$name" = gcc-static ]; then
        compiler=gcc
        options=(-DBUILD_SHARED_LIBS=OFF -DCMAKE_EXE_LINKER_FLAGS=-static
            "-DOpenMP_gomp_LIBRARY=$(gcc -print-file-name=libgomp.a)")
        but='^test_library$' # it opens shared libraries
    fi
    if ! command -v "$compiler" >/dev/null; then
        row "$name" '' 'not here'
        continue
    fi
    version=$("$compiler" --version | sed -n '1s/.*version //; 1s/^.*) //; 1p')
    # shellcheck disable=SC2086 # LDFLAGS may be several
    if ! echo '#include <omp.h>
        int main(void) { return omp_get_max_threads() < 1; }' |
        "$compiler" -fopenmp -x c - -o $work/probe ${LDFLAGS:-} 2>$work/log; then
        row "$name" "$version" 'no OpenMP'
        continue
    fi

    build=$work/$name
    if ! cmake --preset dev -B "$build" -DTSVD_CUDA=OFF -DCMAKE_C_COMPILER="$compiler" \
        "${options[@]}" >"$build.log" 2>&1 ||
        ! cmake --build "$build" -- -k 0 >>"$build.log" 2>&1; then
        tail -40 "$build.log"
        row "$name" "$version" 'does not build'
        failed=1
        continue
    fi
    ctest --test-dir "$build" -j2 --output-on-failure --exclude-regex "$but" >>"$build.log" 2>&1 || {
        grep -A30 'Failed\|not ' "$build.log" | tail -40
        failed=1
    }
    row "$name" "$version" "$(grep "% tests passed" "$build.log")"
done

printf '\n'
printf '%s\n' "${rows[@]}"
exit $failed
