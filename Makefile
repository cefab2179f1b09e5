# `make` alone says what there is. Everything is made inside the checkout; nothing is rebuilt needlessly.

PYTHON ?= python3
SECONDS ?= 60
FUZZED := validator envelope scan header summary cache kept
BIN := .venv/bin
STAMPS := .venv/stamps
RUST := Cargo.toml $(wildcard rust/*/Cargo.toml) $(shell find rust/core rust/py -name '*.rs')
export CARGO_TERM_QUIET ?= true

.DEFAULT_GOAL := help
.PHONY: help setup build test demo lint audit format stubs conformance interop fuzz fuzz-core fuzz-python bench arm torture clean

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: $(STAMPS)/requirements ## create .venv with the pinned tools

build: $(STAMPS)/native ## compile the native module (release) into python/sessiontree

test: build ## run the core's tests and all Python tests
	cargo test -p sessiontree-core
	$(BIN)/python -m pytest

demo: build ## show what it does, on a copy of one of your sessions or on a sample
	$(BIN)/sessiontree demo

lint: build stubs ## formatting, clippy, ruff, mypy and the stub of the native module
	cargo fmt --all --check
	cargo clippy --all-targets -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

audit: build ## ask for known weaknesses of what is built and tested with (needs the network)
	$(BIN)/python .ci/pins
	$(BIN)/python .ci/audit

format: setup ## put Rust and Python sources into their layout
	cargo fmt --all
	$(BIN)/ruff format

stubs: build ## compare the native module with its stub
	$(BIN)/python -m mypy.stubtest sessiontree._native --mypy-config-file pyproject.toml --allowlist tests/stubtest-allowlist.txt

conformance: build ## 350 recorded scenarios of pi 1.6.0 (STRICT=1: key order and file text as well)
	$(BIN)/python tests/conformance/compare.py $(if $(STRICT),--strict) --candidate "$(BIN)/python tests/conformance/adapter.py"

interop: build ## sessiontree and the real pi on the same files (needs npm)
	$(BIN)/python -m pytest tests/interop

fuzz: build ## random sessions and steps to both, for SECONDS=60
	$(BIN)/python tests/interop/fuzz.py --seconds $(SECONDS)

fuzz-core: ## search for bytes that the core does not bear, SECONDS=60 a target (needs cargo-fuzz and nightly Rust)
	@cargo +nightly fuzz --version >/dev/null 2>&1 || \
		{ echo 'cargo-fuzz or a nightly Rust is missing (cargo install cargo-fuzz): nothing is searched' >&2; exit 1; }
	cd rust/fuzz && for target in $(FUZZED); do mkdir -p target/found/$$target && \
		cargo +nightly fuzz run --fuzz-dir . $$target target/found/$$target corpus/$$target -- \
		-dict=json.dict -timeout=20 -print_final_stats=1 -max_total_time=$(SECONDS) || exit; done

fuzz-python: build ## the same for the Python layer (needs atheris)
	@mkdir -p .hypothesis/found
	PYTHONPATH=tests $(BIN)/python -m reliability.fuzz_python --seconds $(SECONDS) .hypothesis/found tests/reliability/corpus

bench: build ## sessiontree beside pi, the best Python port and the floors (QUICK=1: five minutes)
	$(BIN)/python benches/compare.py $(if $(QUICK),--quick) --json benches/results/compare.jsonl

arm: ## run the core's tests as 64-bit Arm code (needs qemu-user)
	rustup target add aarch64-unknown-linux-musl
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER=qemu-aarch64 \
	cargo test -p sessiontree-core --lib --target aarch64-unknown-linux-musl

torture: build ## failing calls, kills, damage, many writers, counted in docs/reliability.md (QUICK=1: two minutes)
	PYTHONPATH=tests $(BIN)/python -m reliability.torture $(if $(QUICK),--quick) --write docs/reliability.md

clean: ## remove what was built; keeps the installed tools
	cargo clean
	rm -f python/sessiontree/_native*.so $(STAMPS)/native
	find python tests benches -name __pycache__ -type d -exec rm -rf {} +
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks dist

$(STAMPS)/requirements: requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python3' >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -r requirements-dev.txt
	@mkdir -p $(STAMPS) && touch $@

# pip has nothing to fetch here: what the package needs is in requirements-dev.txt.
$(STAMPS)/native: $(STAMPS)/requirements pyproject.toml $(RUST)
	@command -v cargo >/dev/null || { echo 'cargo (Rust 1.89 or newer) is needed' >&2; exit 1; }
	@[ -e Cargo.lock ] || { cargo generate-lockfile || cargo generate-lockfile --offline; $(BIN)/python .ci/pins --apply || true; }
	env -u CONDA_PREFIX PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/maturin develop --release -q
	@touch $@
