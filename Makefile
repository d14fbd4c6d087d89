# dns11: every target sets up what it needs. `make` shows the program at work; `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := run
# Node from here where the machine's own is too old; scripts/node.sh puts it there.
export PATH := $(CURDIR)/.cache/node/bin:$(PATH)

.PHONY: run test check bench bench-plot soak keeper chaos fuzz build deb man ten-minutes setup-demo setup-test setup-bench help clean

run: setup-demo build ## A minute's demonstration: a private engine, a small project, names resolving
	@node scripts/demo.mjs

test: setup-test build ## All tests, on real engines (needs root); ONLY=word runs those with the word in their path
	@node scripts/test.mjs $(ONLY)

check: node_modules/.package-lock.json ## Types, lint, format, dead code, layering
	@npm run --silent check

bench: setup-bench build ## The ratios: dns11 beside dockerd and others, in one run (needs root); ONLY=words runs parts, ARGS=--json
	@npm run --silent bench -- $(ONLY) $(ARGS)

bench-plot: ## Draw what the last bench saved; OUT=file.svg says where
	@node scripts/bench-plot.mjs $(OUT)

fuzz: build ## Ten million spoilt queries and replies through every parser (no root needed); INPUTS=N and SEED=N
	@node --expose-gc dist/test/fuzz/fuzz-main.js --inputs $(or $(INPUTS),10000000) $(if $(SEED),--seed $(SEED))

soak: setup-bench build ## Ten minutes of mixed load while containers come and go (needs root); SECONDS=N for longer
	@node dist/test/bench/soak-main.js

keeper: setup-test build ## Each side killed many times, at rest and in the middle of a hand-over (needs root); TIMES=N
	@KEEPER_TIMES=$(or $(TIMES),200) node scripts/test.mjs kernel/keeper docker/replacement docker/killed

chaos: setup-test build ## Faults at random while everybody asks (needs root); MINUTES=N, SEED=N for another plan
	@node --enable-source-maps dist/test/chaos/main.js

build: node_modules/.package-lock.json ## Compile to dist/
	@npm run --silent build

deb: build ## A Debian package with a Node of its own, in .cache/deb
	@scripts/deb.sh

man: build ## The manual pages dns11(8) and dns11.yaml(5), in dist/man
	@ls dist/man/*.[58]

ten-minutes: setup-demo build ## A newcomer's first ten minutes, from the npm package to its removal (needs root)
	@scripts/ten-minutes.sh

setup-demo:
	@scripts/setup.sh demo

setup-test:
	@scripts/setup.sh test

setup-bench:
	@scripts/setup.sh bench

node_modules/.package-lock.json: package.json package-lock.json
	@scripts/node.sh
	@echo "setup: installing the packages of package-lock.json"
	@npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

clean: ## Remove what was built
	@rm -rf dist

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18
