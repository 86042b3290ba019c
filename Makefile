# Every target works from a fresh clone: it creates .venv and installs from the lock when needed.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# Tests of chapters and of the pipeline start kernels; two workers fill two cores.
WORKERS ?= 2
# As they were typed, without make or the shell evaluating anything in them: recipes say "$$NAME", not $(NAME).
OPTIONS := CANDIDATE FOLDER LIMIT NAME PYTHON RECORD SLOW WORKERS
$(foreach option,$(OPTIONS),$(eval override $(option) := $$(value $(option))))
export $(OPTIONS)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYDEVD_DISABLE_FILE_VALIDATION := 1
# Text is UTF-8, whatever the locale says.
export PYTHONUTF8 := 1

# A copied folder would run the code of the one that it was copied from.
$(shell test "$$(cat $(STAMP) 2>/dev/null)" = "$$(pwd -P)" || rm -f $(STAMP))

.PHONY: help book chapter sources test doctests check fix bench audit pdf deposit freeze portability faults epsilon lab lock newest colab clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "make %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

book: $(STAMP) ## run the chapters that changed, check their claims, build the site at _build/html/index.html
	@$(BIN)/python -m companion book

# The name is checked before minutes are spent on installing.
chapter: ## NAME=rbm-mixtures: the same for one chapter and its page
	@fail() { echo "make chapter: $$1, as in make chapter NAME=rbm-mixtures" >&2; exit 2; }; LC_ALL=C; \
	case "$$NAME" in \
	  "") fail "NAME is missing";; \
	  *[!a-z0-9-]*) fail "NAME: expected lower-case letters, digits and hyphens";; \
	esac; \
	test -f "notebooks/$$NAME.md" || fail "NAME: expected a chapter, a file of notebooks/, got $$NAME"
	@$(MAKE) $(STAMP)
	@$(BIN)/python -m companion chapter "$$NAME"

sources: $(STAMP) ## FOLDER=...: newer copies of the sources against what was read, and the claims that rest on what changed
	@test -n "$$FOLDER" || { echo "make sources: FOLDER is missing, the folder of the copies" >&2; exit 2; }
	@$(BIN)/python -m companion sources "$$FOLDER"

# A slow test runs all examples of src with their types checked, so that SLOW=1 does not run them once more without.
test: $(STAMP) ## run the fast tests; SLOW=1 runs the slow ones too
	@$(BIN)/python -m pytest -n "$$WORKERS" --dist worksteal -m "$(if $(SLOW),slow or not slow,not slow)" \
	  $(if $(LIMIT),--longest-fast-test "$$LIMIT") $(if $(SLOW),tests companion/tests companion/src)

# XLA, PyTorch, NumPy and numba without AVX, and OpenBLAS as with AVX-512 (where the processor has it), AVX2 and AVX. The
# last of them with all examples, the others with those of modules that solve or decompose.
doctests: $(STAMP) ## run the examples of src as other processors compute them (three minutes)
	@for core in $$(grep -qs avx512f /proc/cpuinfo && echo SkylakeX) Haswell Sandybridge; do echo "OpenBLAS for $$core"; \
	  examples=src; test "$$core" = Sandybridge || examples="$$(grep -rl --include='*.py' linalg src)"; \
	  OPENBLAS_CORETYPE="$$core" XLA_FLAGS=--xla_cpu_max_isa=SSE4_2 ATEN_CPU_CAPABILITY=default NUMBA_CPU_NAME=generic \
	  NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4" OMP_NUM_THREADS=4 OPENBLAS_NUM_THREADS=4 MKL_NUM_THREADS=4 \
	  $(BIN)/python -m pytest -q -n "$$WORKERS" --dist worksteal $$examples || exit 1; done

check: $(STAMP) ## check format, lint, types and that generated files are in sync
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --check . ; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff check --quiet --preview --select PLW1514 src companion/src
	@$(BIN)/mypy
	@$(BIN)/python -m companion check-sync
	@$(BIN)/cffconvert --validate -i CITATION.cff

fix: $(STAMP) ## format, mend what the linter can mend, write the generated files
	@$(BIN)/python -m companion sync
	@$(BIN)/ruff format .
	@$(BIN)/python -m companion sync --adopt
	@$(BIN)/ruff check --fix .

bench: $(STAMP) ## time the library against plain baselines in the same run; RECORD=1 writes record and page
	@$(BIN)/python -m benchmarks $(if $(RECORD),--record)

audit: book ## the accessibility audit of every page in both themes (needs Chromium and npm)
	@$(BIN)/python -m companion audit

pdf: book ## print the lessons to _build/book.pdf, the audits to _build/audits.pdf (needs Chromium)
	@$(BIN)/python -m companion pdf

deposit: book ## what an archive (Zenodo, Software Heritage) takes, in _build/deposit
	@$(BIN)/python -m companion deposit

freeze: book ## keep the ledger of this release in book/releases, for the next one to be compared with; CANDIDATE=1: before it
	@$(BIN)/python -m companion freeze $(if $(CANDIDATE),--candidate "$$CANDIDATE")

portability: $(STAMP) ## tests and claims under other instructions, threads and orders (some 90 minutes, resumable)
	@$(BIN)/python -m companion portability

faults: $(STAMP) ## plant the faults of tests/faults.yml one by one: who notices (some 50 minutes, resumable)
	@$(BIN)/python -m companion faults

epsilon: $(STAMP) ## the smallest error of every function that its claims would notice (hours, resumable)
	@$(BIN)/python -m companion epsilon

# JupyterLab has an environment of its own: it needs a jsonschema that another package of the lock refuses.
lab: $(STAMP) ## JupyterLab on the notebooks, with the kernel ready
	@test -x _build/lab/bin/jupyter-lab || { "$$PYTHON" -m venv _build/lab && _build/lab/bin/pip install --quiet -c constraints.txt "jupyterlab>=4"; }
	@$(BIN)/python -m ipykernel install --prefix _build/lab --name python3 >/dev/null 2>&1
	@cd notebooks && ../_build/lab/bin/jupyter-lab

# Without torch, whose build, and so whose checksum, differs between machines; constraints.txt pins its version. And
# without the two projects, which extras name.
lock: $(STAMP) ## compile requirements.lock anew from both pyproject.toml and constraints.txt
	@echo "./companion[book]" | $(BIN)/pip-compile --quiet --generate-hashes --all-extras --strip-extras --unsafe-package torch \
	  --unsafe-package spinbook --unsafe-package companion-press --no-emit-find-links --no-emit-index-url --no-header --resolver=backtracking -c constraints.txt \
	  -o requirements.lock pyproject.toml -

newest: ## install the newest versions that pyproject.toml allows instead of the locked ones; FOLDER=_build/newest: beside them
	@test -x "$${FOLDER:-.venv}/bin/python" || "$$PYTHON" -m venv "$${FOLDER:-.venv}"
	@"$${FOLDER:-.venv}/bin/pip" install --quiet --upgrade --upgrade-strategy eager -e "./companion[book]" -e ".[notebook,test,dev]"
	@test -n "$$FOLDER" || pwd -P > $(STAMP)

colab: ## Colab's packages (tests/colab.txt) in _build/colab, and beside them the oldest versions with the tests' tools
	@test -x _build/colab/bin/python || "$$PYTHON" -m venv _build/colab
	@_build/colab/bin/python -m pip install --quiet -r tests/colab.txt
	@_build/colab/bin/python -m venv --without-pip _build/oldest
	@_build/colab/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  > "$$(_build/oldest/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/lent.pth"
	@printf '%s\n' "$$(pwd -P)/src" "$$(pwd -P)/companion/src" >> "$$(_build/oldest/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/lent.pth"
	@_build/oldest/bin/python -m pip install --quiet -c tests/colab.txt -r tests/oldest.txt \
	  beartype hypothesis jsonschema pytest pytest-xdist

clean: ## remove everything generated, the environment too
	rm -rf _build .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Every package of the lock must have one of its checksums. torch comes alone, by its pin in constraints.txt and beside
# the others, since each of the two takes a minute: with no torch installed, a range asked for by another package takes
# the newest CUDA build. What is imported, the smaller part, is compiled then. The third installation adds what the lock
# cannot know: packages that only another system or another Python needs.
$(STAMP): pyproject.toml companion/pyproject.toml constraints.txt requirements.lock
	@echo "Installing into .venv (several minutes the first time)"
	@test "$$(cat .venv/.place 2>/dev/null)" = "$$(pwd -P)" || { rm -rf .venv && "$$PYTHON" -m venv .venv && pwd -P > .venv/.place; }
	@$(BIN)/python -c 'import sys; sys.exit("Python 3.11 or newer is needed" if sys.version_info < (3, 11) else 0)'
	@$(BIN)/pip install --quiet --no-compile --no-deps -c constraints.txt torch & torch=$$!; \
	  $(BIN)/pip install --quiet --no-compile --require-hashes --no-deps -r requirements.lock || { kill $$torch; exit 1; }; wait $$torch
	@$(BIN)/pip install --quiet -c constraints.txt --no-build-isolation -e "./companion[book]" -e ".[notebook,test,dev]"
	@$(BIN)/pip check
	@pwd -P > $@
