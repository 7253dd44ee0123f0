# Every target does its own set-up, in .venv and build/. `make` lists the targets.

# The Python interpreter of .venv.
PYTHON ?= python3
# The preset of CMakePresets.json for ctest.
PRESET ?= asan
# The kernels that ctest runs with, one after the other; none: the best that the processor runs.
KERNELS ?=
# Settings for CMake.  Where no GPU is visible, code for one could not run: it is not compiled.
export CMAKE_ARGS ?= $(if $(shell nvidia-smi --list-gpus 2>/dev/null),,-DTSVD_CUDA=OFF)
# How many tests run at once.  NumPy's BLAS has one thread in each: threads of several processes that
# spin would take the processors from one another.
PROCESSES ?= $(shell nproc)
# More arguments for pytest, the benchmarks or the verification.
ARGS ?=

BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)

# The directories stand for files that come and go.
SOURCES := CMakeLists.txt pyproject.toml README.md csrc cuda cmake python/tsvd \
    $(shell find csrc cuda cmake python/tsvd -type f -not -path '*/__pycache__/*')
C_SOURCES := $(shell find bindings csrc cuda examples tests/abi tests/c tests/library \
    -name "*.[ch]" -o -name "*.[ch]pp" -o -name "*.cu" -o -name "*.cuh")

.PHONY: help demo test bench verify gpu lint format ctest coverage library dist-library compilers \
    emulated valgrind reference java fortran r rust julia wheels clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

demo: .venv/tsvd .venv/progress ## decompose bidiagonal matrices that come from real data
	$(BIN)/python -m tsvd demo

test: .venv/tsvd .venv/test ## run the Python tests (ARGS="-m slow": the long ones)
	OPENBLAS_NUM_THREADS=1 SKBUILD_BUILD_DIR=build/python $(BIN)/python -m pytest -n $(PROCESSES) $(ARGS)

bench: .venv/tsvd .venv/test ## time tsvd and its peers, write result files (ARGS=tables: write the tables)
	$(BIN)/python -m benchmarks $(ARGS)

verify: .venv/tsvd .venv/test ## check random draws (ARGS="evolve 100000": search for the worst)
	$(BIN)/python -m verification $(or $(ARGS),draws)

gpu: .venv/gpu ## test and measure on the GPU of this machine (ARGS: the folder that it fills)
	scripts/gpu.sh $(ARGS)

lint: .venv/dev ## check the style of every file and the types, change nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell
	$(BIN)/clang-format --dry-run -Werror $(C_SOURCES)
	$(BIN)/nbstripout --keep-id --verify notebooks/*.ipynb
	$(BIN)/python -m pytest -q tests/test_typing.py

format: .venv/dev ## bring every file into style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(C_SOURCES)
	$(BIN)/nbstripout --keep-id notebooks/*.ipynb

ctest: .venv/build ## build and run the C tests (PRESET=asan, dev, gpu, clang, clang-asan or tsan)
	$(BIN)/cmake --preset $(PRESET) $(if $(CONFIGURE),"$(CONFIGURE)")
	$(BIN)/cmake --build --preset $(PRESET)
	but=; for kernels in $(or $(strip $(subst ",,$(KERNELS))),""); do \
	    TSVD_CPU_KERNELS=$$kernels $(BIN)/ctest --preset $(PRESET) $$but || exit 1; \
	    but="--label-exclude once"; \
	done

coverage: .venv/build ## list the lines of csrc that no C test reaches
	rm -rf build/coverage
	$(MAKE) ctest PRESET=coverage KERNELS="$$(scripts/kernels.sh)"
	scripts/coverage.py build/coverage

library: .venv/build ## build the C library, and use it as C and C++ programs do
	tests/library/run

reference: ## write the comments of the headers as pages, into build/reference/html
	mkdir -p build/reference
	TSVD_VERSION=$$(sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml) \
	    doxygen docs/reference/Doxyfile

dist-library: .venv/build ## make a tarball of the C library in dist/
	scripts/dist_library.sh

compilers: .venv/build ## the C tests with each compiler that is here (ARGS="gcc-14 clang-19": with these)
	scripts/compilers.sh $(ARGS)

emulated: .venv/build ## the C tests on other processors, by qemu (ARGS="aarch64 s390x": on these)
	scripts/emulated.sh $(ARGS)

valgrind: .venv/build ## some C tests under valgrind (ARGS="test_svd test_dense": these)
	scripts/valgrind.sh $(ARGS)

java: .venv/build ## build the Java bindings, and test them with each JDK that is here (ARGS=bench: time calls)
	bindings/java/run $(ARGS)

fortran: .venv/build ## build the C library, and test the Fortran module with it
	bindings/fortran/run

r: .venv/build ## build the C library, and the R package on it, and test it
	bindings/r/run

rust: .venv/build ## build the C library, and the Rust crate on it, and test it
	bindings/rust/run

julia: .venv/build ## build the C library, and run a Julia program with it
	bindings/julia/run

wheels: .venv/dev ## make the sdist and wheels in dist/, and check them in bare environments
	scripts/wheels.sh

clean: ## remove everything that make made
	rm -rf .venv build dist .hypothesis .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each file below records when its part of .venv was installed.

.venv/build: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip scikit-build-core cmake ninja numpy
	touch $@

# Without build isolation the build folder stays valid, so that only changed files are compiled.
.venv/tsvd: .venv/build $(SOURCES)
	SKBUILD_BUILD_DIR=build/python $(BIN)/python -m pip install --quiet --no-build-isolation \
	    --check-build-dependencies .
	touch $@

# The extras of pyproject.toml.
.venv/progress .venv/test .venv/gpu .venv/dev: .venv/%: pyproject.toml | .venv/tsvd
	$(BIN)/python -m pip install --quiet "tsvd[$*]"
	touch $@
