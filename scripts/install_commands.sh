#!/usr/bin/env bash
# Runs the commands `pip install ...` of pages of documentation as they stand there, each in a new
# environment with the pip that the interpreter brings.
#
#     scripts/install_commands.sh PYTHON PAGE...
#
# tsvd comes from dist/ (make wheels), not from the package index.  Commands that bring cuBLAS are left
# out, since they download some hundred megabytes, unless INSTALL_CUDA=1 and dist/ has the device
# library.  Builds from the sources leave CUDA out: to compile it takes minutes.  On PATH there are a
# compiler and the system's small programs, but no cmake, ninja or nvcc.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(command -v "$1")
work=$PWD/build/install_commands
rm -rf "$work"
mkdir -p "$work/bin"
for program in sh bash env uname git gcc g++ cc c++ as ld ar ranlib nm objcopy strip; do
    ln -sf "$(command -v "$program")" "$work/bin/$program"
done

mapfile -t commands < <(grep -oh '`pip install [^`]*`' "${@:2}" | tr -d '`' | sort -u)
[ "${#commands[@]}" -gt 0 ] || { echo 'no commands found'; exit 1; }
for command in "${commands[@]}"; do
    printf '\n--- %s\n' "$command"
    "$python" -m venv --clear "$work/venv"
    case $command in
    *'[cu'*)
        major=$(sed 's/.*\[cu\([0-9]*\)\].*/\1/' <<<"$command")
        if [ "${INSTALL_CUDA:-0}" = 0 ] || ! compgen -G "dist/tsvd_cuda$major-*" >/dev/null; then
            echo 'left out: it brings cuBLAS'
            continue
        fi
        env -i HOME="$HOME" PATH="$work/venv/bin:$work/bin" PIP_FIND_LINKS="$PWD/dist" \
            bash -c "$command --quiet"
        (cd "$work" && venv/bin/tsvd info)
        ;;
    *TSVD_CUDA=ON*) # which must be refused here, and say what is missing
        if log=$(env -i HOME="$HOME" PATH="$work/venv/bin:$work/bin" CUDACXX=/nonexistent \
            bash -c "$command" 2>&1); then
            echo 'it succeeded without nvcc'
            exit 1
        fi
        grep 'Install the CUDA Toolkit' <<<"$log"
        ;;
    *' .'*) # from the sources
        env -i HOME="$HOME" PATH="$work/venv/bin:$work/bin" CUDACXX=/nonexistent \
            CMAKE_ARGS=-DTSVD_CUDA=OFF PIP_DISABLE_PIP_VERSION_CHECK=1 bash -c "$command --quiet"
        (cd "$work" && venv/bin/tsvd --version)
        ;;
    *)
        env -i HOME="$HOME" PATH="$work/venv/bin:$work/bin" PIP_FIND_LINKS="$PWD/dist" \
            PIP_DISABLE_PIP_VERSION_CHECK=1 bash -c "$command --quiet"
        (cd "$work" && venv/bin/tsvd --version)
        ;;
    esac
done
