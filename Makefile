# The same commands for people and for CI. Each sets up what it needs by itself.
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# Compiling Playhead anew in every process takes longer than most of them do.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-hard test-matrix check bench bench-peers clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml hatch_build.py src/playhead/event/_speed.c src/playhead/capture/_hooks.c src/playhead/store/_forking.c src/playhead/ingest/otlp/_read.c scripts/setup
	@scripts/setup $(VENV)

demo: $(STAMP)  ## record a real agent run without an API key, show it, play it back, verify it
	@$(BIN)/playhead demo

test: $(STAMP) check  ## run the whole suite
	@scripts/test-tools
	@scripts/test-environments new plain >/dev/null
	@$(BIN)/python -m pytest -n 2 --dist worksteal || scripts/test-again $$? $(BIN)/python

test-hard: $(STAMP)  ## run the long forms too: every byte flip, 200 kills, every system call failing
	@scripts/test-tools
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not matrix' --timeout 3600 --hypothesis-profile search

test-matrix: $(STAMP)  ## run every SDK and framework against a scripted provider, bare and recorded
	@scripts/test-environments >/dev/null
	@$(BIN)/python -m pytest tests/matrix -n 2 --dist loadgroup -m 'matrix or not matrix'

check: $(STAMP)  ## lint and type-check
	@$(BIN)/ruff check src tests bench
	@$(BIN)/ruff format --check src tests bench
	@$(BIN)/mypy

bench: $(STAMP)  ## measure speed and size, each against a floor or a peer in the same run
	@$(BIN)/python bench/run.py

bench-peers: $(STAMP)  ## measure the server side by side with Phoenix and MLflow, and a floor (15 minutes)
	@scripts/bench-environments >/dev/null
	@$(BIN)/python -m bench.peers.run

clean:  ## remove what the other targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
