# Every target works from a fresh clone: it creates .venv and installs from the lock when needed.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# Tests of chapters and of the press start kernels; two workers fill two cores.
WORKERS ?= 2
# As they were typed, without make or the shell evaluating anything in them: recipes say "$$NAME", not $(NAME).
OPTIONS := NAME PYTHON RECORD SLOW WORKERS
$(foreach option,$(OPTIONS),$(eval override $(option) := $$(value $(option))))
export $(OPTIONS)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYDEVD_DISABLE_FILE_VALIDATION := 1
# Text is UTF-8, whatever the locale says.
export PYTHONUTF8 := 1
# What is imported is compiled once, and not by every process anew, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

# A copied folder would run the code of the folder that it was copied from.
$(shell test "$$(cat $(STAMP) 2>/dev/null)" = "$$(pwd -P)" || rm -f $(STAMP))

.PHONY: help book chapter test doctests check fix bench lab lock newest colab clean

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

test: $(STAMP) ## run the fast tests; SLOW=1 runs the slow ones too
	@$(BIN)/python -m pytest -n "$$WORKERS" --dist worksteal $(if $(SLOW),-m "slow or not slow")

# XLA, PyTorch, NumPy and numba without AVX, and side by side OpenBLAS as with AVX-512 (where the processor has it), AVX2
# and AVX. The last of them with all examples, the others with those of modules that solve or decompose.
doctests: $(STAMP) ## run the examples of src as other processors compute them (two minutes)
	@export XLA_FLAGS=--xla_cpu_max_isa=SSE4_2 ATEN_CPU_CAPABILITY=default NUMBA_CPU_NAME=generic \
	  NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4" OMP_NUM_THREADS=4 OPENBLAS_NUM_THREADS=4 MKL_NUM_THREADS=4; \
	run() { OPENBLAS_CORETYPE="$$1" $(BIN)/python -m pytest -q "$${@:2}" || { echo "OpenBLAS for $$1" >&2; false; }; }; \
	run Sandybridge src & runs=$$!; \
	for core in $$(grep -qs avx512f /proc/cpuinfo && echo SkylakeX) Haswell; do \
	  run "$$core" $$(grep -rl --include='*.py' linalg src) & runs+=" $$!"; done; \
	failed=0; for run in $$runs; do wait "$$run" || failed=1; done; exit $$failed

check: $(STAMP) ## check format, lint, types, and every rule of the pages and claims that needs no run
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --check . ; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/python -m companion check
	@$(BIN)/cffconvert --validate -i CITATION.cff

fix: $(STAMP) ## format, and mend what the linter can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(STAMP) ## time the library against plain baselines in the same run; RECORD=1 writes record and page
	@$(BIN)/python -m benchmarks $(if $(RECORD),--record)

# JupyterLab opens the texts as notebooks (right click, Open With, Notebook), and saves them as texts: there is no pair
# that could get lost.
lab: $(STAMP) ## JupyterLab on the notebooks, with the kernel ready
	@test -x _build/lab/bin/jupyter-lab || { "$$PYTHON" -m venv _build/lab && _build/lab/bin/pip install --quiet -c constraints.txt "jupyterlab>=4" jupytext; }
	@$(BIN)/python -m ipykernel install --prefix _build/lab --name python3 >/dev/null 2>&1
	@cd notebooks && ../_build/lab/bin/jupyter-lab

# Without torch, whose build, and so whose checksum, differs between machines; constraints.txt pins its version.
lock: $(STAMP) ## compile requirements.lock anew from pyproject.toml and constraints.txt
	@$(BIN)/pip-compile --quiet --generate-hashes --all-extras --strip-extras --unsafe-package torch --unsafe-package spinbook \
	  --no-emit-find-links --no-emit-index-url --no-header --resolver=backtracking -c constraints.txt -o requirements.lock pyproject.toml

newest: ## install the newest versions that pyproject.toml allows instead of the locked ones
	@test -x $(BIN)/python || "$$PYTHON" -m venv .venv
	@$(BIN)/pip install --quiet --upgrade --upgrade-strategy eager -e ".[book,test,dev]"
	@pwd -P > $(STAMP)

colab: $(STAMP) ## Colab's packages (tests/colab.txt) in _build/colab, and the lessons' notebooks beside them
	@test -x _build/colab/bin/python || "$$PYTHON" -m venv _build/colab
	@_build/colab/bin/python -m pip install --quiet -r tests/colab.txt
	@PACKED_PYTHON=$$PWD/_build/colab/bin/python $(BIN)/python -m pytest -m slow tests/book/test_packed_lessons.py

clean: ## remove everything generated, the environment too
	rm -rf _build .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Every package of the lock must have one of its checksums. torch comes alone, by its pin in constraints.txt and beside
# the others, since each of the two takes a minute: with no torch installed, a range asked for by another package takes
# the newest CUDA build. What is imported, the smaller part, is compiled then. The third installation adds what the lock
# cannot know: packages that only another system or another Python needs.
$(STAMP): pyproject.toml constraints.txt requirements.lock
	@echo "Installing into .venv (several minutes the first time)"
	@test "$$(cat .venv/.place 2>/dev/null)" = "$$(pwd -P)" || { rm -rf .venv && "$$PYTHON" -m venv .venv && pwd -P > .venv/.place; }
	@$(BIN)/python -c 'import sys; sys.exit("Python 3.11 or newer is needed" if sys.version_info < (3, 11) else 0)'
	@$(BIN)/pip install --quiet --no-compile --no-deps -c constraints.txt torch & torch=$$!; \
	  $(BIN)/pip install --quiet --no-compile --require-hashes --no-deps -r requirements.lock || { kill $$torch; exit 1; }; wait $$torch
	@$(BIN)/pip install --quiet -c constraints.txt --no-build-isolation -e ".[book,test,dev]"
	@$(BIN)/pip check
	@pwd -P > $@
