# make demo   the whole system on this machine, on real data, with the live page
# make test   everything that must hold before a change lands
# make soak   the longer proofs, up to 20 minutes each: make soak PART=client-kills
#
# Each does its own set-up, in $(VENV). Another Python: make test PYTHON=python3.13 VENV=.venv313

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# The generator has an environment of its own: see [dependency-groups] in pyproject.toml.
PROTOS := $(VENV)-protos
PART   ?=

.PHONY: demo test soak bench lint types imports protos protos-check browser constraints clean

demo: $(READY)
	$(BIN)/hubbub demo

# Each file's tests in one process, since they share what is made for them once.
test: lint types imports protos-check browser
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

soak: $(READY) browser
	$(BIN)/python -m pytest -m soak --timeout 1200 $(if $(PART),-k "$(subst -,_,$(PART))")

bench: $(READY)
	@for benchmark in benchmarks/*.py; do echo; echo "== $$benchmark"; $(BIN)/python $$benchmark || exit 1; done

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

imports: $(READY)
	$(BIN)/lint-imports

protos: $(PROTOS)/.ready
	PATH=$(abspath $(PROTOS))/bin:$$PATH buf lint
	PATH=$(abspath $(PROTOS))/bin:$$PATH buf format --write
	$(PROTOS)/bin/python tools/gen_protos.py

protos-check: $(PROTOS)/.ready
	PATH=$(abspath $(PROTOS))/bin:$$PATH buf lint
	PATH=$(abspath $(PROTOS))/bin:$$PATH buf format --diff --exit-code
	$(PROTOS)/bin/python tools/gen_protos.py --check

# The browser tests use Debian's Chromium. Where it cannot be installed they say so and skip.
browser:
	@command -v chromium >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing Debian's chromium for the browser tests"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	  else echo "no chromium: the browser tests will skip"; fi; }

constraints: $(READY)
	$(BIN)/python -m pip install --quiet uv
	{ echo "# Every version that \`make\` installs, for Python 3.11 and later. Made by \`make constraints\`."; \
	  $(BIN)/uv pip compile --quiet --no-annotate --no-header --universal --python-version 3.11 \
	    --extra all --group dev --group fuzz pyproject.toml; } > constraints.txt.new
	mv constraints.txt.new constraints.txt

clean:
	rm -rf $(VENV) $(PROTOS) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "installing Hubbub and what it needs into $(VENV)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --editable '.[all]' --group dev
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --only-binary :all: --group fuzz \
	  || echo "no atheris for this system: the fuzzing will skip"
	touch $@

$(PROTOS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(PROTOS)
	@echo "installing the protobuf generator into $(PROTOS)"
	$(PROTOS)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(PROTOS)/bin/python -m pip install --quiet --disable-pip-version-check --group protos
	touch $@
