# Millrace: every command of the house. `make` alone prints them.
PYTHON := .venv/bin/python
.DEFAULT_GOAL := help
# The project that `make up` runs, and whose settings the tests begin with.
export LAKEHOUSE_PROJECT ?= $(CURDIR)/demo
# Spark's tests and the whole stack at once, as `make -j test` would have it, starve each other.
.NOTPARALLEL:
.PHONY: help machine setup demo demo-kafka compose-demo up down test test-all test-slow spark e2e unit faults security race soak bench readers image dist own-airflow viewers bill notice reference site lint kafka browser screenshots

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

machine:
	@sh embedded/check_machine.sh

setup: machine ## virtual environment from uv.lock, and Spark's jars (done by every target that needs it)
	@sh embedded/setup.sh

demo: setup ## three days of real flights through a real Airflow, checked against their source
	@$(PYTHON) -m demo.run

demo-kafka: setup kafka ## real flights through a real Kafka broker into bronze and silver, checked likewise
	@$(PYTHON) -m demo.kafka.run

compose-demo: setup image ## the same three days through docker-compose.yaml, with the tables in its bucket; needs Docker
	@$(PYTHON) -m demo.team

up: setup ## start the local stack and leave it running: Airflow in the browser
	@$(PYTHON) -m embedded.up

down: setup ## stop the local stack; nothing is left behind
	@$(PYTHON) -m embedded.down

# A suite that fails does not keep the next one from running; one summary comes at the end.
SUITES := $(PYTHON) -m tests.suites
# Without a browser the tests that need one are skipped, or fail where CI=true; all others run.
TRY_BROWSER := sh embedded/browser.sh || true

# CI says E2E=e2e-all: all tests of the whole stack, on one stack.
E2E := e2e
test: setup kafka ## the tests that pin behaviour, and a day through a real Airflow
	@$(SUITES) unit spark $(E2E)

test-all: setup kafka ## all tests but the long proofs: killed drivers, races, every format, backfills as well
	@$(TRY_BROWSER)
	@$(SUITES) unit spark spark-slow e2e-all

test-slow: setup kafka ## what `make test-all` has beyond `make test`
	@$(TRY_BROWSER)
	@$(SUITES) spark-slow e2e-slow

spark: setup kafka ## only the tests with Spark or Airflow inside
	@$(SUITES) spark spark-slow

unit: setup ## only the tests and examples that need neither: a few minutes
	@$(SUITES) unit

e2e: setup kafka ## only the tests of the whole stack: a real Airflow, backfills, kills
	@$(TRY_BROWSER)
	@$(SUITES) e2e-all

faults: setup kafka ## the long proofs: drivers and servers that die at every further place, full disks, random changes (an hour)
	@$(SUITES) faults

security: setup kafka ## the tests that SECURITY.md names, and no others (a quarter of an hour)
	@$(SUITES) security

race: setup ## writers race on disk and on S3, by our log stores and by Delta's own: no commit may get lost (an hour)
	@$(PYTHON) -m races versions
	@$(PYTHON) -m races drivers

soak: setup ## eight writers of every kind at one lakehouse, killed at any moment; then each row is looked for (40 minutes)
	@$(PYTHON) -m races soak

bench: setup ## Millrace against a plain script: CPU-seconds, wall time, ratios (an hour)
	@$(PYTHON) -m benchmarks

viewers: setup ## fifty people on all pages of a real Airflow for two minutes, and what its API and scheduler then do (ten minutes)
	@$(PYTHON) -m benchmarks.web.viewers

readers: setup ## what other libraries read otherwise than Spark: writes the list into the guide Read a table (ten minutes)
	@.venv/bin/uv pip install --quiet --no-deps --target data/readers daft==0.7.26 chdb==4.4.0 chdb-core==26.9.0
	@PYTHONPATH=data/readers $(PYTHON) -m tests.foreign_readers --write

own-airflow: dist ## the guide Add Millrace to your Airflow, in an empty folder: a stock Airflow, the wheel, a day; FOR=3.12 for another Python (five minutes)
	@$(PYTHON) -m tests.own_airflow $(FOR)

dist: setup ## a wheel for your own Airflow, in dist
	@sh embedded/build_wheel.sh

image: bill ## an image of all that a job or an Airflow of Millrace needs: `docker run millrace lakehouse plan`
	@docker build --build-arg MILLRACE_BASE_IMAGE --tag $${MILLRACE_IMAGE:-millrace} .

bill: setup ## what the image holds of others, with versions and checksums: millrace.cdx.json (CycloneDX)
	@$(PYTHON) -m embedded.contents.bill_of_materials > millrace.cdx.json

notice: setup ## the file NOTICE: licences of all packages and jars of others, after a change of uv.lock or jars.lock
	@$(PYTHON) -m embedded.contents.notice

reference: setup ## the lists of keys, rules and examples in docs/reference, after a change of the models of specs
	@$(PYTHON) -m embedded.documentation.reference

site: setup ## the documentation as web pages with search, in data/site/html; links that lead nowhere end it
	@$(PYTHON) -m embedded.documentation.site

lint: setup ## ruff, mypy, the import contracts, and the examples in docstrings
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy
	@.venv/bin/lint-imports
	@# Each module is imported for its examples; the settings of a private Airflow must be there before that.
	@$(PYTHON) -m pytest --quiet -p tests.conftest -p tests.unit.plugins.conftest --doctest-modules \
		--ignore include/millrace/new_project --ignore demo/dags include/millrace spark_jobs/millrace_spark plugins embedded demo containers

kafka: setup ## a Kafka broker of our own, for tests and the Kafka demo (43 MB)
	@$(PYTHON) -m embedded.kafka_broker

browser: setup ## a browser for the tests of the web pages and for pictures, unless this machine has Chromium (100 MB)
	@sh embedded/browser.sh

screenshots: setup browser ## the pictures of the documentation, taken anew from the demo's own data
	@$(PYTHON) -m demo.screenshots.take
