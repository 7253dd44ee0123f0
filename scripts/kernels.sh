#!/bin/sh
# The instruction sets of the CPU kernels that this processor runs.
has() {
    for flag in "$@"; do
        grep -qsw "$flag" /proc/cpuinfo || return 1
    done
}

sets=generic
if has avx2 fma; then
    sets="$sets avx2"
    if has avx512f avx512dq avx512vl avx512bw; then
        sets="$sets avx512"
    fi
fi
echo "$sets"
