"""The checker: the instructor's tests in a trusted process, the student's code in a sandbox, data between them."""

from lantern_grading.checker.pool import Pool
from lantern_grading.checker.runner import grade_one

__all__ = ["Pool", "grade_one"]
