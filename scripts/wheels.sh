#!/usr/bin/env bash
# Makes the source distribution and the wheels of this machine, and checks them, without a container.
# The workflow publish.yml makes those that are published, in containers of cibuildwheel.
#
#     scripts/wheels.sh [FOLDER]        (dist)
#
#     tsvd         one wheel for CPython 3.11 and later, and one for each other interpreter that
#                  needs its own: 3.10, and free-threaded ones.  For the CPU, from the sdist
#     tsvd-cudaNN  the device library, for any Python, where nvcc is.  NN: its CUDA
#
# Then each wheel is repaired by auditwheel, which says what systems it runs on; and in a bare
# environment of each interpreter, with nothing of the system on the path, the examples of the
# README and the demo run.
#
# WHEEL_PYTHONS   interpreters ("python3.10 python3.12"); by default those of 3.10 and later on PATH
# WHEEL_CUDA      0: no device library
# CUDAARCHS       architectures of the device library, as CMake reads them; by default all
#
# It needs the extra "dev", and gcc.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "${1:-dist}" && cd "${1:-dist}" && pwd)
root=$PWD
work=$root/build/wheels
mkdir -p "$work"

# The limits of `auditwheel show` for the wheel of the CPU, in bytes: without its compiler's
# libraries, which a repair puts in.
cpu_most=1500000 cuda_most=100000000

say() {
    printf '\n--- %s\n' "$*"
}

# The tag of an interpreter: cp310, cp313t.
tag_of() {
    "$1" -c 'import sys, sysconfig
print("cp3%d" % sys.version_info[1] + "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED")))'
}

find_pythons() {
    local name
    for name in python3.{10,11,12,13,14}{,t}; do
        if command -v "$name" >/dev/null && "$name" -c 'import ensurepip' 2>/dev/null; then
            echo "$name"
        fi
    done
}

repair() {
    local wheel=$1 most=$2 size
    auditwheel show "$wheel" | tail -n +2
    size=$(stat -c %s "$wheel")
    echo "${wheel##*/}: $size bytes, at most $most"
    [ "$size" -le "$most" ]
    auditwheel repair --wheel-dir "$out" "$wheel"
}

read -ra pythons <<<"${WHEEL_PYTHONS:-$(find_pythons | tr '\n' ' ')}"
rm -rf "$work/raw" "$out"/tsvd*
mkdir -p "$work/raw"

say 'sdist'
python3 -m build --sdist --outdir "$out"
[ "${#pythons[@]}" -gt 0 ] || { echo 'no Python 3.10 or later on PATH'; exit 1; }

made=()
for python in "${pythons[@]}"; do
    tag=$(tag_of "$python")
    case $tag in
    cp310 | *t) ;;
    *) tag=abi3 ;;
    esac
    [[ " ${made[*]:-} " = *" $tag "* ]] && continue
    made+=("$tag")
    say "wheel of tsvd, $tag, by $python"
    "$python" -m venv --clear "$work/$tag"
    "$work/$tag/bin/python" -m pip install --quiet --upgrade pip
    "$work/$tag/bin/python" -m pip wheel --no-deps --wheel-dir "$work/raw" \
        --config-settings cmake.define.TSVD_CUDA=OFF "$out"/tsvd-*.tar.gz
done
[[ " ${made[*]} " != *" abi3 "* ]] || abi3audit --strict "$work"/raw/*-abi3-*.whl
for wheel in "$work"/raw/tsvd-*.whl; do
    say "repair of ${wheel##*/}"
    repair "$wheel" $cpu_most
done

if [ "${WHEEL_CUDA:-1}" != 0 ] && PATH=$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null; then
    major=$(PATH=$PATH:/usr/local/cuda/bin nvcc --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
    say "device library, CUDA $major, architectures ${CUDAARCHS:-all}"
    began=$SECONDS
    SKBUILD_BUILD_DIR=$work/cuda$major \
        python3 -m build --wheel --outdir "$work/raw" "packaging/cuda$major"
    echo "$((SECONDS - began)) s"
    say 'its repair'
    repair "$work"/raw/tsvd_cuda*.whl $cuda_most
else
    say 'no device library: no nvcc, or WHEEL_CUDA=0'
fi

for python in "${pythons[@]}"; do
    say "a bare environment of $("$python" --version)"
    "$python" -m venv --clear "$work/bare"
    "$work/bare/bin/python" -m pip install --quiet --only-binary=:all: numpy scipy
    "$work/bare/bin/python" -m pip install --quiet --no-index --find-links "$out" tsvd
    # no compiler, no CUDA Toolkit, none of the sources on the path
    (cd "$work" && env -i HOME="$HOME" PATH="$work/bare/bin" PYTHONSAFEPATH=1 bare/bin/python - \
        "$root/README.md" <<'CHECK'
import doctest
import sys

import tsvd

failed, tried = doctest.testfile(sys.argv[1], module_relative=False)
print(f"README: {tried} lines, {failed} failed; {tsvd.__file__}")
sys.exit(failed > 0 or tried == 0)
CHECK
    cd "$work" && env -i HOME="$HOME" PATH="$work/bare/bin" bare/bin/python -m tsvd demo)
done

say 'made'
(cd "$out" && stat -c '%10s  %n' *)
