"""Releasing and grading the labs: a thin layer on nbgrader."""
