#!/usr/bin/env bash
# Makes a tarball of the C library: shared and static, headers, what CMake and pkg-config need, the
# licence.  `make dist-library` runs this.
#
#     scripts/dist_library.sh [FOLDER]        (dist)
#
# makes FOLDER/tsvd-VERSION-SYSTEM-PROCESSOR.tar.gz.  The same sources give the same bytes in any
# folder, with the same compiler and the same libraries.
#
# CMAKE_ARGS          more options for CMake; without them the CPU alone
# BUILD               the build folder (build/dist); what it has compiled is not compiled again
# SOURCE_DATE_EPOCH   the time of all files; by default that of the last commit
#
# It needs cmake and ninja.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "${1:-dist}" && cd "${1:-dist}" && pwd)
build=${BUILD:-build/dist}
read -ra options <<<"-DTSVD_CUDA=OFF ${CMAKE_ARGS:-}"
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) ||
        { echo 'outside a clone SOURCE_DATE_EPOCH must be set'; exit 1; }
fi
umask 022

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
name=tsvd-$version-$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m)
staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
log=$staged/log
prefix=$staged/$name

cmake --preset library -B "$build" -DCMAKE_INSTALL_LIBDIR=lib "${options[@]}" >"$log" ||
    { cat "$log"; exit 1; }
cmake --build "$build"
cmake --install "$build" --prefix "$prefix" >"$log"

# -D: archives without times and owners.
strip --strip-unneeded "$prefix"/lib/libtsvd.so.*.*.*
strip -D --strip-debug "$prefix/lib/libtsvd.a"

# The newest version of each library's symbols is the oldest that the shared library runs with.
needs=$(objdump -T "$prefix/lib/libtsvd.so" | grep -o '(GLIBC_[0-9.]*)' | tr -d '()' | sort -uV |
    tail -1 | tr _ ' ')
needs="${needs/GLIBC/glibc}, $(objdump -p "$prefix/lib/libtsvd.so" |
    sed -n 's/^ *NEEDED *//p' | sort | paste -sd ' ')"
doc=$prefix/share/doc/tsvd
mkdir -p "$doc"
cp LICENSE CHANGELOG.md docs/{c,building,java,languages}.md "$doc"
cat >"$doc/README" <<TEXT
tsvd $version: singular value decomposition of bidiagonal and dense matrices, for C, C++, Fortran, Java and others.

The shared library needs $needs.
It chooses code for the processor when it is loaded.

This folder may lie anywhere.  CMake finds it by CMAKE_PREFIX_PATH, pkg-config by
PKG_CONFIG_PATH=<this folder>/lib/pkgconfig.  building.md says more, and c.md what the functions do.
TEXT

archive=$out/$name.tar.gz
tar -C "$staged" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX \
    --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" | gzip -9n >"$archive"
(cd "$out" && sha256sum "$name.tar.gz")
echo "needs $needs"
