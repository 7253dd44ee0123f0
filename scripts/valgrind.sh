#!/usr/bin/env bash
# Runs C tests under valgrind's memcheck, with the kernels that it knows.  `make valgrind` runs this.
# It takes minutes, and is not part of .ci/run.
#
#     scripts/valgrind.sh [TEST...]
#
# There are no suppressions.  It needs cmake, ninja and valgrind, which has no AVX-512.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/valgrind
tests=("$@")
[ $# -gt 0 ] || tests=(test_svd test_select test_skinny_f64 test_product_f32)

# -gdwarf-4: valgrind reads newer symbols of gcc alone.
cmake --preset dev -B $build -DTSVD_CUDA=OFF '-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g -gdwarf-4' \
    >/dev/null
cmake --build $build -j "${CMAKE_BUILD_PARALLEL_LEVEL:-2}" --target "${tests[@]}" >/dev/null
for kernels in generic avx2; do
    for name in "${tests[@]}"; do
        echo "$name, $kernels"
        TSVD_CPU_KERNELS=$kernels OMP_NUM_THREADS=1 valgrind --quiet --error-exitcode=1 \
            --track-origins=yes "$build/$name"
    done
done
