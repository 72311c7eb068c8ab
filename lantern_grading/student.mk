# make and Python 3.11 to 3.13 are all that has to be there.
PYTHON ?= python3
WEEK ?= week1

.PHONY: lab
lab: .venv/.ready ## open a lab in JupyterLab: make lab, or make lab WEEK=week2
	@.venv/bin/jupyter lab labs/$(WEEK)/$(WEEK).ipynb

.venv/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else "The labs need Python 3.11 to 3.13; this is %d.%d. Name another one: make lab PYTHON=python3.12" % sys.version_info[:2])'
	@echo "Setting up .venv (about a minute, once) ..."
	@$(PYTHON) -m venv --clear .venv
	@.venv/bin/python -m pip install -q -e .
	@touch $@
