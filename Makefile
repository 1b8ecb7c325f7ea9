# Every target sets up what it needs; `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo quick test check bench faults soak clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: .venv/ready  ## make .venv with the package and all tools

.venv/ready: pyproject.toml constraints.txt tools/setup.sh
	@sh tools/setup.sh $(PYTHON)

demo: setup  ## see a pipeline at work, in the terminal
	@$(BIN)/headwater demo

quick: setup  ## unit tests that take no seconds, of properties a fifth of the examples: no Spark session, no server
	SOAK=$${SOAK:-0.2} $(BIN)/python -m pytest tests/unit -n 3 -m "not long and not slow"

test: setup  ## run all tests, with the servers they need; properties with a third of their examples
	SOAK=$${SOAK:-0.33} $(BIN)/python -m pytest tests/unit tests/docs tests/contract src -n 3
	$(BIN)/python -m pytest tests --ignore tests/unit --ignore tests/docs --ignore tests/contract -n 3 --dist loadfile --no-loadscope-reorder

check: setup  ## lint, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/unit/test_layers.py tests/unit/test_mirror.py

bench: setup  ## measure, beside Kafka in the same run
	$(BIN)/python -m bench

faults: setup  ## minutes of kill -9, lost power and killed brokers (FAULT_SECONDS=180 of the log, FAULT_KILLS=50 of a pipeline)
	FAULT_SECONDS=$${FAULT_SECONDS:-180} FAULT_KILLS=$${FAULT_KILLS:-50} $(BIN)/python -m pytest tests/faults tests/integration -s -m "faults or long" -o faulthandler_timeout=14400

soak: setup  ## properties over many more examples (SOAK=10 times as many, PROPERTY_EXAMPLES=40 random pipelines)
	SOAK=$${SOAK:-10} $(BIN)/python -m pytest tests/unit -n auto --timeout 3600 -o faulthandler_timeout=14400
	PROPERTY_EXAMPLES=$${PROPERTY_EXAMPLES:-40} $(BIN)/python -m pytest tests/spark/test_random_pipelines.py --timeout 3600 -o faulthandler_timeout=14400
	$(BIN)/python -m pytest tests/unit/examples/test_flights.py tests/spark/test_flights.py tests/spark/engine/spark/test_class_archive.py -m long -o faulthandler_timeout=14400

clean:  ## remove .venv and caches
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
