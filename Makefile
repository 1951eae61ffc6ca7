# Both README commands do all set-up themselves; a second run starts work at once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# A checkout that was renamed has to be set up again: its .venv names the old folder.
STAMP  := $(VENV)/.installed-$(shell pwd -P | cksum | cut -d' ' -f1)
CLIENTS := .clients
CORES := $(shell $(PYTHON) -c "import os; print(os.cpu_count() or 1)")
# One process more than cores: some tests wait for a disk, a time-out or a client.
WORKERS := $(shell expr $(CORES) + 1)

export PATH := $(CURDIR)/$(BIN):$(PATH)
# Thousands of processes are started; each would compile what was edited since the set-up.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup clients demo test test-all test-quick bench check clean

$(STAMP): pyproject.toml scripts/setup.sh
	@bash scripts/setup.sh "$(PYTHON)" "$(VENV)"
	@touch $(STAMP)

setup: $(STAMP)

$(CLIENTS)/.installed: tests/clients/package.json scripts/clients.sh
	@bash scripts/clients.sh "$(CLIENTS)" "$@"

clients: $(CLIENTS)/.installed

demo: $(STAMP)
	@$(BIN)/pypto-op demo
	@cd $$(mktemp -d demo-out/team-XXXX) && pypto-op run --replay ../../examples/transcripts/rmsnorm.yaml

test: $(STAMP) clients
	@bash scripts/test.sh $(WORKERS)

test-all: $(STAMP) clients
	@PYPTO_OP_ALL_CASES=1 bash scripts/test.sh $(WORKERS)

test-quick: $(STAMP)
	@PYPTO_OP_TESTS=quick $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not sim and not slow and not client"

bench: $(STAMP)
	@$(BIN)/python -m benchmarks

check: $(STAMP)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check lint scripts tests && $(BIN)/mypy && $(BIN)/lint-imports --no-cache

clean:
	rm -rf $(VENV) $(CLIENTS) demo-out bench-out
