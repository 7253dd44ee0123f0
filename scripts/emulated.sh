#!/usr/bin/env bash
# Compiles for other processors, and runs the C tests on an emulator.  `make emulated` runs this.
# It takes about an hour for each on two cores, and is not part of .ci/run.
#
#     scripts/emulated.sh [PROCESSOR...]        (aarch64 s390x ppc64le)
#
# TESTS   a regular expression of ctest: these tests alone
#
# It needs cmake, ninja, gcc for each processor and QEMU's user mode emulation, on Debian
# gcc-aarch64-linux-gnu, gcc-s390x-linux-gnu, gcc-powerpc64le-linux-gnu and qemu-user.
set -euo pipefail
cd "$(dirname "$0")/.."
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-2}
export OMP_WAIT_POLICY=passive # the tests run two at a time
work=build/emulated
mkdir -p $work

processors=("$@")
[ $# -gt 0 ] || processors=(aarch64 s390x ppc64le)

# These start themselves anew, or are started without the emulator, which only a kernel that
# knows it (binfmt_misc) can do.
but='test_kernels|abi_layout'

failed=0
for processor in "${processors[@]}"; do
    triplet=$processor-linux-gnu flags=
    if [ "$processor" = ppc64le ]; then
        triplet=powerpc64le-linux-gnu
        # The tests need a long double with the range of IEEE 754's, the library does not.
        flags='-mabi=ieeelongdouble -Wno-psabi'
    fi
    emulator=$(command -v "qemu-$processor" "qemu-$processor-static" | head -1)
    build=$work/$processor
    cmake --preset dev -B "$build" -DTSVD_CUDA=OFF \
        -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$processor" \
        -DCMAKE_C_COMPILER="$triplet-gcc" -DCMAKE_C_FLAGS="$flags" \
        "-DCMAKE_CROSSCOMPILING_EMULATOR=$emulator;-L;/usr/$triplet" >"$build.log"
    cmake --build "$build" >>"$build.log"
    ctest --test-dir "$build" -j2 --timeout 3600 --output-on-failure \
        --tests-regex "${TESTS:-.}" --exclude-regex "$but" | tee -a "$build.log" || failed=1
done
exit $failed
