"""nbgrader's settings for the course. `python -m lantern_grading` loads this file too."""

from pathlib import Path

from lantern_grading.preprocessors import autograde_defaults, feedback_preprocessors, release_preprocessors
from lantern_grading.sandbox import Limits, kernelspec

c = get_config()  # noqa: F821  (traitlets puts it there)

_gradebook = Path(__file__).resolve().parent / "gradebook"
_gradebook.mkdir(exist_ok=True)  # nbgrader opens its database here and does not make the folder

c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "labs"
c.CourseDirectory.submitted_directory = "gradebook/submitted"
c.CourseDirectory.autograded_directory = "gradebook/autograded"
c.CourseDirectory.feedback_directory = "gradebook/feedback"
c.CourseDirectory.db_url = f"sqlite:///{_gradebook / 'gradebook.db'}"

c.GenerateAssignment.preprocessors = release_preprocessors()
c.GenerateFeedback.preprocessors = feedback_preprocessors()
autograde_defaults(c)
# Student code runs in the sandbox, whatever kernel a notebook asks for. Where there is none, nothing is graded.
c.Execute.kernel_name = kernelspec.use()
c.Execute.timeout = round(Limits().cell_seconds)
