# Every target works on a machine with make, git and Python >= 3.11; `make help` lists them.
# The first run fills .venv from requirements.lock; later runs need no network until that file changes.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2
DATA   ?=
OUT    ?=
MUTANTS ?=
SEED   ?= 1
COUNT  ?= 20000
KILLS  ?= 8
SEEDS  ?= 0:200
FAULTS ?= all
MINUTES ?=
PROFILE ?= containers
FRESH  ?=
FULL   ?=
ONLY   ?=
FLIGHT ?=
REV    ?=
N      ?=

# What `make test` runs: everything that needs no server. Files of one test module stay on one worker.
TESTS  := tests/unit tests/contract tests/scenarios tests/simulation tests/fuzz tests/demo tests/e2e
# What `make integration` runs: what has a real server to run on.
SUITES := tests/contract/log tests/contract/stores tests/integration
PYTEST := $(BIN)/pytest -q
SPREAD := -n $(JOBS) --dist loadfile

export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONPATH VIRTUAL_ENV

.DEFAULT_GOAL := help
.PHONY: help setup dev demo fmt lint types contracts schemas schemas-check tidy check test coverage integration contract-diff \
	docs simulation explore mutants mutants-known fuzz soak faults takeover zombie acl-matrix upgrade rebuild-archive e2e bench determinism kills rebuild \
	up down servers alerts lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv from requirements.lock (done by the other targets too)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Evenflow needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
		|| { echo "No virtual environment: install your system's python3-venv package." >&2; exit 1; }
	@if ! cmp -s requirements.lock $(VENV)/.lock; then \
		echo "Installing the locked packages into $(VENV) ..."; \
		$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock && cp requirements.lock $(VENV)/.lock; \
	fi
	@$(BIN)/python -m pip install --quiet --no-index --no-deps --no-build-isolation --editable .
	@touch $@

dev: $(STAMP) ## Run everything in one process: three sites, a seeded load, the console on localhost
	$(BIN)/evenflow dev

demo: $(STAMP) ## Join four sites made of a recorded fleet and show what joining was worth; OUT=DIR keeps the log
	@$(BIN)/evenflow demo $(if $(OUT),--out $(OUT))

fmt: $(STAMP) ## Format the code and apply the safe fixes
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

lint: $(STAMP) ## Check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## Check types strictly
	$(BIN)/mypy libs services

contracts: $(STAMP) ## Check who imports whom
	@mkdir -p .cache
	$(BIN)/lint-imports --cache-dir .cache/import-linter

schemas: $(STAMP) ## Write schemas/ from the event contracts
	$(BIN)/python -m evenflow.events.schema write .
	$(BIN)/python -m evenflow.testkit.examples .

schemas-check: $(STAMP) ## Fail when schemas/ drifted or broke compatibility
	$(BIN)/python -m evenflow.events.schema check .

tidy: $(STAMP) ## Check the structure of the tree
	$(PYTEST) -vv --no-header tests/unit/tidy

check: lint types contracts schemas-check tidy ## Style, types, import contracts, schemas and structure

test: $(STAMP) ## Run the tests that need no server
	$(PYTEST) $(SPREAD) $(TESTS)

coverage: $(STAMP) ## The tests again, with a report of lines and branches not reached
	@mkdir -p .cache
	$(PYTEST) $(SPREAD) --cov --cov-report=term $(TESTS)

integration: $(STAMP) ## Run the contract suites on real servers: named ones, a container engine's, else local processes
	$(PYTEST) --servers $(SUITES)

contract-diff: $(STAMP) ## Run the contract suites on every backend: the same tests for each, none left out
	@$(BIN)/python -m evenflow.testkit.servers.contract

docs: $(STAMP) ## Run every command block, program and scenario that the documentation shows, on real servers where it needs them
	$(PYTEST) tests/e2e/docs tests/e2e/test_compose_services.py
	$(PYTEST) --servers tests/integration/docs tests/integration/subscribers

simulation: $(STAMP) ## Run the seeded worlds
	$(PYTEST) $(SPREAD) tests/simulation tests/scenarios

explore: $(STAMP) ## Live random worlds with faults: SEEDS=0:200 JOBS=2 FAULTS=all MINUTES=5 OUT=found
	$(BIN)/evenflow simulate explore --seeds $(SEEDS) --faults $(FAULTS) --jobs $(JOBS) \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(OUT),--out $(OUT))

mutants: $(STAMP) ## Break each mechanism and print what notices: worlds and scenario files; MUTANTS="fence inbox" names some
	$(BIN)/python -m evenflow.testkit.mutants --jobs $(JOBS) $(MUTANTS)

mutants-known: $(STAMP) ## The part of the matrix that is known beforehand: one seed and the named files for each mutant
	$(BIN)/python -m evenflow.testkit.mutants --known --jobs $(JOBS) $(MUTANTS)

e2e: $(STAMP) ## Run whole processes against each other
	$(PYTEST) -rP $(SPREAD) tests/e2e

bench: $(STAMP) ## Measure the path, the telemetry and the status query; DATA=DIR names recorded data
	$(BIN)/evenflow bench path $(if $(DATA),--data $(DATA))
	$(BIN)/evenflow bench telemetry $(if $(DATA),--data $(DATA))
	$(BIN)/evenflow bench status $(if $(DATA),--data $(DATA))

fuzz: $(STAMP) ## Throw COUNT generated records and requests at every topic, route and quantity; SEED=N others
	$(BIN)/python -m evenflow.testkit.fuzz --count $(COUNT) --seed $(SEED) --jobs $(JOBS)

soak: $(STAMP) ## Run evenflow dev for MINUTES under load and faults: memory, descriptors, lag; SEED=N others
	$(BIN)/python -m evenflow.testkit.soak --minutes $(or $(MINUTES),10) --seed $(SEED)

faults: $(STAMP) ## Harm services, servers and stores of a world of processes, row by row; FULL=1 for all rows, ONLY=TEXT for some
	@$(BIN)/python -m evenflow.testkit.processes faults $(if $(FULL),--full) $(if $(ONLY),--only "$(ONLY)") \
		$(if $(FLIGHT),--flight $(FLIGHT))

takeover: $(STAMP) ## End the leading placement process N times on a real log, half of them killed, and time the next leader
	@$(BIN)/python -m evenflow.testkit.processes takeover --count $(or $(N),20)

upgrade: $(STAMP) ## Replace services of an earlier revision one by one under load on a real Kafka; REV=REVISION FLIGHT=500
	@$(BIN)/python -m evenflow.testkit.processes upgrade $(if $(REV),--rev "$(REV)") $(if $(FLIGHT),--flight $(FLIGHT))

rebuild-archive: $(STAMP) ## Let the ledger expire from a real Kafka, lose every view, and compare what the archive brings back
	@$(BIN)/python -m evenflow.testkit.processes rebuild-archive $(if $(FLIGHT),--flight $(FLIGHT))

zombie: $(STAMP) ## Let a leader stand still in the middle of a round on a real log, until another leads, and go on
	@$(BIN)/python -m evenflow.testkit.processes zombie

acl-matrix: $(STAMP) ## Try every user on every topic of a Kafka with users, TLS and the registry's permissions: the broker must refuse the rest
	@$(BIN)/python -m evenflow.testkit.locked

determinism: $(STAMP) ## Every scenario and the demo twice, in unlike surroundings: the logs must be equal
	.ci/determinism $(BIN)/evenflow

kills: $(STAMP) ## Kill a writer of the file log at each of its fail points, KILLS times at each
	EVENFLOW_KILLS=$(KILLS) $(PYTEST) -s tests/contract/log/test_kills.py

rebuild: $(STAMP) ## Kill the process, delete every view, and compare what the log brings back
	$(PYTEST) -rP tests/e2e/test_rebuild.py

ifeq ($(PROFILE),local)
up: $(STAMP) ## Start the servers in containers, or with PROFILE=local as processes on loopback; FRESH=1 without old data
	@$(BIN)/python -m evenflow.testkit.servers up $(if $(FRESH),--fresh)
else
up:
	deploy/docker/make-secrets
	docker compose up --detach --build --wait
endif

down: ## Stop what `make up` started; data stays
	@if [ -f .cache/local-servers/state.json ]; then $(BIN)/python -m evenflow.testkit.servers down; \
	else docker compose down; fi

alerts: $(STAMP) ## Check Prometheus' configuration, the alert rules and their tests with promtool; built once, needs go
	@$(BIN)/python -m evenflow.testkit.alerts

servers: $(STAMP) ## Fetch and build what PROFILE=local needs, once; needs java, mvn, go, cargo and redis-server
	@$(BIN)/python -m evenflow.testkit.servers build

lock: ## Write requirements.lock anew from pyproject.toml (needs the network)
	.ci/lock $(PYTHON)

clean: ## Remove what the targets made
	rm -rf $(VENV) .cache .coverage htmlcov dist build
