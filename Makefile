# One front door. Every target creates or reuses .venv by itself; a clean clone needs only
# Python >= 3.11, make and a C++ compiler.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
STAMPS := $(VENV)/stamps
FUZZ_SECONDS ?= 60
PYTEST_ARGS ?= -n auto
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
# CMake and ninja come from the virtual environment.
export PATH := $(CURDIR)/$(BIN):$(PATH)

PIP := $(PY) -m pip install --quiet
NATIVE := CMakeLists.txt $(wildcard src/tfrio/*.cpp src/tfrio/*.hpp) \
	$(shell find core -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name 'CMakeLists.txt' 2>/dev/null)

.PHONY: help demo test lint types sanitize oracle bench bench-peers docs fuzz build format clean
.DEFAULT_GOAL := help

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMPS)/native $(STAMPS)/demo ## walk the whole road on a real scene, results in demo-out/
	@$(PY) -W error -m tfrio demo demo-out

test: build $(STAMPS)/core ## run every test
	@ctest --test-dir build/core --output-on-failure --no-tests=error
	@$(PY) -m pytest $(PYTEST_ARGS)

lint: $(STAMPS)/dev ## check formatting and style, Python and C++
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/clang-format --dry-run --Werror $(filter %.cpp %.hpp %.h,$(NATIVE))

format: $(STAMPS)/dev ## format Python and C++ in place
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(filter %.cpp %.hpp %.h,$(NATIVE))

types: build $(STAMPS)/dev ## mypy --strict
	@$(BIN)/mypy

sanitize: $(STAMPS)/build ## the core's own tests under ASan and UBSan
	@cmake -S . -B build/sanitize -G Ninja -DCMAKE_BUILD_TYPE=Sanitize -DTFRIO_PYTHON=OFF -DTFRIO_TESTS=ON
	@cmake --build build/sanitize
	@ctest --test-dir build/sanitize --output-on-failure --no-tests=error

fuzz: $(STAMPS)/build ## libFuzzer on framing and wire, FUZZ_SECONDS each (needs clang)
	@core/fuzz/run.sh $(FUZZ_SECONDS)

bench: build ## the small benchmarks, ratios in one run
	@$(PY) -m benchmarks

bench-peers: build ## the whole benchmarks against pinned peers, in environments under .bench/
	@$(PY) -m benchmarks.examples --peers

oracle: build ## exchange files with TensorFlow and compare every value (nightly)
	@$(PY) -m oracle

docs: build $(STAMPS)/docs ## build the documentation to site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "site/index.html"

build: $(STAMPS)/native $(STAMPS)/test ## .venv with the extension, all extras and the test requirements

clean: ## remove everything that was made, .venv too
	rm -rf $(VENV) build dist site demo-out .mypy_cache .ruff_cache .pytest_cache .hypothesis

# `pip install .` puts a copy of the code in place of the editable install, which later edits would
# not reach: then install anew.
ifneq ($(wildcard $(STAMPS)/native),)
ifeq ($(wildcard $(VENV)/lib/python*/site-packages/*editable*tfrio*),)
$(info $(VENV) holds a copy of tfrio in place of this checkout (pip install .): the next step mends that)
$(shell rm -f $(STAMPS)/native)
endif
endif

# --- stamps: each step runs again only when what it depends on has changed -----------------------

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit("tfrio needs Python >= 3.11, this is " + sys.version if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	@# Dependency groups need pip >= 25.1.
	$(PIP) --upgrade 'pip>=25.1'
	@mkdir -p $(STAMPS) && touch $@

# The build requirements are read from pyproject.toml, where they are pinned.
$(STAMPS)/build: pyproject.toml | $(STAMPS)/venv
	$(PIP) --group build $$($(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])')
	@touch $@

$(STAMPS)/native: $(NATIVE) $(STAMPS)/build
	$(PIP) --no-build-isolation --editable .
	@touch $@

$(STAMPS)/core: $(NATIVE) $(STAMPS)/build
	@cmake -S . -B build/core -G Ninja -DCMAKE_BUILD_TYPE=Developer -DTFRIO_PYTHON=OFF -DTFRIO_TESTS=ON >/dev/null
	@cmake --build build/core
	@touch $@

$(STAMPS)/demo: $(STAMPS)/native
	$(PIP) 'tfrio[demo]'
	@touch $@

$(STAMPS)/test: $(STAMPS)/native
	$(PIP) 'tfrio[all]' --group test
	@touch $@

$(STAMPS)/dev: pyproject.toml | $(STAMPS)/venv
	$(PIP) --group dev
	@touch $@

$(STAMPS)/docs: pyproject.toml | $(STAMPS)/venv
	$(PIP) --group docs
	@touch $@
