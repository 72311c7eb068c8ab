"""The one error of the sandbox."""


class SandboxError(Exception):
    """The sandbox cannot be had, or did not do what it must. Grading stops; there is no way around it."""
