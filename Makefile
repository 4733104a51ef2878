# SPDX-License-Identifier: Apache-2.0 OR MIT
# Delegates only; each target can be run by hand with the command that it shows.
SHELL := /bin/bash
WARIFU := .venv/bin/warifu

.DEFAULT_GOAL := help
.PHONY: help setup release demo test test-system soak lint bench accuracy table3 kernel wolfssl \
	conformance programs dependencies m3-tls m3-qemu golden fuzz docs wheel \
	container-test clean

help: ## this list
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | \
		sed -E 's/^([a-z0-9-]+):.*## /  make \1	/' | expand -t 20

setup: ## packages, virtual environment, binaries (development build)
	@scripts/setup

release: ## the same with the release build, which is what may be timed
	@scripts/setup --release

demo: release ## calibrate this host, predict and measure the first loop, compare, report
	@scripts/demo

test: ## what every change must pass: Rust, seeds, Python, a few programs (15 minutes)
	@scripts/setup --with tests
	@scripts/test

test-system: ## the lab, programs, card readers, tokens, table 3 (root; 45 minutes)
	@scripts/setup --with tests
	@scripts/test-system

soak: ## fuzzing, random instructions, floods, statistical coverage, DDS, containers (4 hours)
	@scripts/setup --with containers
	@scripts/setup --with tests
	@scripts/soak

lint: setup ## formatting, clippy, ruff, mypy
	@scripts/lint

bench: ## speeds beside SimPy's and SoftHSM2's, instruction counts, the link's precision
	@scripts/setup --release --with bench
	@bench/run

accuracy: release ## the judged cells with the trials that the gates need; resumes where it stopped
	@scripts/accuracy

table3: release ## the paper's Table 3 with the virtual SIM and the agent (six quiet minutes)
	@scripts/table3

kernel: release ## the simulated TCP against captures of the running kernel (root, a quiet machine)
	@.venv/bin/python -m pytest tests/system/kernel

wolfssl: ## wolfSSL's IoT SAFE client, built from Debian's source, at the virtual SIM
	@scripts/setup --with wolfssl
	@scripts/wolfssl

conformance: setup ## python-pkcs11's own tests on the module, in an environment of their own
	@scripts/conformance

programs: ## a table of programs that the module was not made for: version and result
	@scripts/setup --with programs
	@scripts/programs

dependencies: ## licences, sources; advisories in WARIFU_ADVISORIES=FOLDER (first builds cargo-deny)
	@scripts/dependencies

m3-tls: ## a TLS 1.3 handshake on the simulated Cortex-M3, message by message
	@scripts/setup --with tests
	@scripts/m3-tls

recipes: ## recipes counted anew in OpenSSL, Mbed TLS and wolfSSL (half an hour), and judged
	@scripts/setup --release --with recipes
	@scripts/recipes

m3-qemu: ## the Cortex-M3 beside QEMU: ten million random instructions, programs, rules
	@scripts/setup --with tests
	@M3_RANDOM_INSTRUCTIONS=10000000 cargo test --locked --workspace \
		--test qemu --test timing --test taint -- --nocapture

golden: setup ## write the golden files anew (give the reason in the commit)
	@scripts/golden

fuzz: setup ## fuzz every parser, FUZZ_SECONDS each (600)
	@fuzz/run all $${FUZZ_SECONDS:-600}

docs: ## the pages as a site, target/site; every link is checked
	@scripts/docs

wheel: setup ## one wheel with profiles, programs and libraries, release build, in target/wheels
	@scripts/wheel

container-test: ## the steps of Dockerfile and .devcontainer in empty root folders (root)
	@scripts/setup --with containers
	@.venv/bin/python -m pytest tests/containers --durations=5

clean: ## remove what was built; results stay
	rm -rf target .venv fuzz/target
