# Every target sets up what it needs. All that has to be there is make and Python 3.11 to 3.13.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
HTML := _build/html
WEEK ?= week1

.DEFAULT_GOAL := help
.PHONY: help book serve test check unit execute whole bench lab release student variant mutate grade format lock vendor clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else "Lantern needs Python 3.11 to 3.13; this is %d.%d. Name another one: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	@echo "Setting up .venv from requirements.lock (about a minute) ..."
	@$(PYTHON) -m venv --clear .venv
	@# pip installs uv, uv installs the rest in a tenth of pip's time; where uv finds no index, pip knows one.
	@awk '/^uv==/{on=1} on{print} on && !/\\$$/{exit}' requirements.lock > .venv/uv.txt
	@$(BIN)/python -m pip install -qq --no-deps --require-hashes -r .venv/uv.txt
	@$(BIN)/uv pip install -q --require-hashes -r requirements.lock --python $(BIN)/python \
	  || $(BIN)/python -m pip install -qq --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation -e .
	@touch $@

book: $(READY) ## build the book and print the page to open
	@$(BIN)/python -m lantern_book build

serve: book ## build the book and serve it on this machine
	@echo "http://127.0.0.1:8000 (stop with Ctrl-C)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory $(HTML) 8000

test: check unit whole ## everything: style, units, every notebook, a clean build, grading, the browser

check: $(READY) ## style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

unit: $(READY) ## fast tests and doctests
	@$(BIN)/pytest -q -n 2 --dist loadgroup -m "not book and not grading and not browser"

execute: $(READY) ## execute every page and every solution with papermill
	@$(BIN)/python -m lantern_book execute --jobs 2
	@$(BIN)/python -m lantern_book execute --jobs 2 --notebooks solutions/*/*.ipynb

whole: $(READY) ## build the book clean (which executes every page), execute the solutions, then the slow tests
	@$(BIN)/python -m lantern_book build --clean
	@$(BIN)/python -m lantern_book execute --jobs 2 --notebooks solutions/*/*.ipynb
	@# Only the files that have such tests: to look through the others takes half a minute in each process.
	@$(BIN)/pytest -q -n 2 --dist loadgroup -m "book or grading or browser" \
	  $$(grep -lE "mark\.(book|grading|browser)" tests/test_*.py)

bench: $(READY) ## measure the simulator and its sweeps; LANTERN_DATA names the folder of public traces
	@$(BIN)/python benchmarks

lab: $(READY) ## open the labs in JupyterLab
	@$(BIN)/jupyter lab --notebook-dir labs

release: $(READY) ## write labs/ from solutions/
	@$(BIN)/python -m lantern_grading release $(WEEK)

student: $(READY) ## write the archive that students get
	@$(BIN)/python -m lantern_grading student

variant: $(READY) ## write a student's own instance of a lab: make variant STUDENT=ada WEEK=week3
	@test -n "$(STUDENT)" || { echo "Say for whom: make variant STUDENT=ada WEEK=$(WEEK)"; exit 2; }
	@$(BIN)/python -m lantern_grading variant $(WEEK) --student "$(STUDENT)" $(if $(COURSE),--course "$(COURSE)")

mutate: $(READY) ## change a lab's solution in every small way; hidden tests should notice (slow)
	@$(BIN)/python -m lantern_grading.mutation $(WEEK)

grade: $(READY) ## grade a class: make grade COURSE=path/to/course WEEK=week1
	@test -n "$(COURSE)" || { echo "Say where the course lies: make grade COURSE=path/to/course WEEK=$(WEEK)"; exit 2; }
	@$(BIN)/python -m lantern_grading grade --course "$(COURSE)" --assignment $(WEEK)

format: $(READY) ## format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# All extras but `engine`, which nothing here needs and which brings a model of 253 MB.
EXTRAS := labs book grading mutation postgres sweep cluster cli dev

lock: $(READY) ## choose new versions for requirements.lock
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --upgrade $(EXTRAS:%=--extra %) pyproject.toml -o requirements.lock

vendor: $(READY) ## fetch the pinned third-party files of the book again (needs npm)
	@$(BIN)/python -m lantern_book.refresh_vendor

clean: ## remove what was built
	@rm -rf _build build *.egg-info .pytest_cache .mypy_cache .ruff_cache
