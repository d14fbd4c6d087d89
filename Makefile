# dns11: every target sets up what it needs. `make` runs a demonstration; `make help` lists all targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := run
# A Node installed by scripts/node.sh, where the system's is too old.
export PATH := $(CURDIR)/.cache/node/bin:$(PATH)
# What sudo has made in the checkout of a user belongs to that user, who goes on without sudo.
give_back = if [ "$$(id -u)" -eq 0 ] && [ ! -O . ]; then mkdir -p .cache dist && chown -R --reference=. .cache dist node_modules; fi

.PHONY: run test test-all unit rig vm check house ways bench bench-plot bench-docs clients soak keeper chaos fuzz fuzz-kernel kernel-same siege build deb release release-check action man walk ten-minutes docs docs-captures ui-captures setup-demo setup-unit setup-test setup-bench setup-vm setup-docs setup-release help clean

run: setup-demo build ## A demonstration: a private engine, a name that fails, its diagnosis and fix, then the page until Ctrl-C; ARGS=--once leaves out the page
	@node scripts/demo.mjs $(ARGS)

test: setup-test build ## Tests of each change, on real engines (needs root); ONLY=WORD selects by path, TABLE=1 prints what each file costs
	@node scripts/test.mjs $(ONLY) $(if $(UNTIL),--until $(UNTIL)) $(if $(TABLE),--table)
	@$(give_back)

test-all: setup-test build ## All tests, also the long ones, and those for each change without two of the features (needs root); TABLE=1
	@node scripts/test.mjs --all $(if $(TABLE),--table)
	@node scripts/without.mjs etcd
	@node scripts/without.mjs policy
	@$(give_back)

unit: setup-unit build ## The tests that need neither root nor an engine; less than a minute
	@node scripts/test.mjs unit/ docs.test tidy

rig: setup-test build ## Test what the other tests stand on, after a change of test/support (needs root)
	@node scripts/test.mjs /rig

check: node_modules/.package-lock.json ## Types, lint, format, dead code, layering
	@npm run --silent check

house: ## How much code there is, in all and of each feature
	@node scripts/house.mjs

ways: setup-test build ## Which files have code that runs for a query, a container, a setting and others (needs root); FILES=1 lists them
	@node scripts/ways.mjs $(if $(FILES),--files)

mutants: build ## Put one-line faults into the program, one at a time, and see which the unit tests find (no root needed); COUNT=N, SEED=N, ROOMS="src/query ..."
	@node scripts/mutants.mjs

bench: setup-bench build ## Benchmark dns11 against dockerd and others (needs root); ONLY=WORDS selects parts, ARGS=--json
	@npm run --silent bench -- $(ONLY) $(ARGS)

clients: setup-bench build ## Measure what the resolvers of programs do when names fail, for docs/internals/measurements.md (needs root)
	@node --enable-source-maps dist/test/bench/clients-main.js

bench-plot: ## Plot the results of the last bench; OUT=FOLDER
	@node scripts/bench-plot.mjs $(OUT)

bench-docs: ## Write the tables and pictures of the last whole bench into the documents
	@node scripts/bench-docs.mjs
	@node scripts/bench-plot.mjs docs/img

fuzz: build ## Fuzz every parser with ten million malformed queries and replies (no root needed); INPUTS=N, SEED=N
	@node --expose-gc dist/test/fuzz/fuzz-main.js --inputs $(or $(INPUTS),10000000) $(if $(SEED),--seed $(SEED))

kernel-same: build ## Compare answers by the kernel with the process's for a million random queries of each kind and mode (needs root); QUERIES=N
	@KERNEL_QUERIES=$(or $(QUERIES),1000000) node --enable-source-maps --test dist/test/features/kernel-answers/{same,cached}.test.js

fuzz-kernel: build ## Fuzz the program that answers in the kernel with ten million packets (needs root); INPUTS=N, SEED=N
	@node --expose-gc dist/test/fuzz/fuzz-main.js --kernel --inputs $(or $(INPUTS),10000000) $(if $(SEED),--seed $(SEED))

soak: setup-bench build ## Ten minutes of mixed load while containers start and stop (needs root); SECONDS=N
	@node dist/test/bench/soak-main.js

keeper: setup-test build ## Kill the keeper and the main process many times, also during hand-over (needs root); TIMES=N
	@KEEPER_TIMES=$(or $(TIMES),200) node --enable-source-maps --test --test-concurrency=1 \
	  dist/test/kernel/keeper.test.js dist/test/docker/{handover,replacement,killed}.test.js

vm: setup-vm build ## Try other kernels and Debian releases in virtual machines (needs root); ONLY="6.1 6.12" selects kernels
	@nice -n 10 node --enable-source-maps dist/test/vm/main.js $(ONLY)

chaos: setup-test build ## Random faults under load (needs root); MINUTES=N, SEED=N
	@node --enable-source-maps dist/test/chaos/main.js

siege: setup-test build ## Attack enforced policies on two Docker daemons: 1,000 starts, 500 queries a second, real servers (needs root); STARTS=N
	@SIEGE_STARTS=$(or $(STARTS),1000) SIEGE_QUERIES=500 SIEGE_SERVERS=real node --enable-source-maps --test --test-concurrency=1 dist/test/siege/*.test.js

build: node_modules/.package-lock.json ## Compile to dist/
	@npm run --silent build
	@$(give_back)

deb: build ## Build a Debian package that includes Node, in .cache/deb
	@scripts/deb.sh
	@$(give_back)

release: node_modules/.package-lock.json ## All files of a release, in .cache/release/VERSION: packages, archives, images, bill of materials, sums
	@node scripts/release.mjs $(OUT)

release-check: setup-release node_modules/.package-lock.json ## Build a release twice, compare the bytes, and start both architectures
	@scripts/release/check.sh

action: node_modules/.package-lock.json ## Write the programs of the GitHub Action, from src/action
	@node scripts/action.mjs

man: build ## Build the manual pages dns11(8) and dns11.yaml(5), in dist/man
	@ls dist/man/*.[58]

walk: ## Walk through README as a new user, in new root file systems of Debian 12 and 13 (needs root, mmdebstrap); ONLY=trixie
	@scripts/walk.sh $(ONLY)

ten-minutes: setup-demo build ## Run the first ten minutes of a new user, from installation to removal (needs root)
	@scripts/ten-minutes.sh

docs: build ## Write the generated parts of docs/: commands, settings, errors, log messages
	@node scripts/docs.mjs

docs-captures: setup-docs build ## Capture the outputs and the recording in the documents from a run (needs root)
	@node scripts/docs-captures.mjs

ui-captures: setup-docs build ## Capture the pictures of the page of dns11 ui in the documents from a run (needs root)
	@node scripts/ui-captures.mjs

setup-demo:
	@scripts/setup.sh demo

setup-unit:
	@scripts/setup.sh unit

setup-test:
	@scripts/setup.sh test

setup-bench:
	@scripts/setup.sh bench

setup-vm:
	@scripts/setup.sh vm

setup-docs:
	@scripts/setup.sh docs

setup-release:
	@scripts/setup.sh release

node_modules/.package-lock.json: package.json package-lock.json
	@scripts/node.sh
	@echo "setup: installing the packages of package-lock.json"
	@npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@
	@$(give_back)

clean: ## Remove build output
	@rm -rf dist

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18
