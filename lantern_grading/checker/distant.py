"""What stands for the instructor's objects in the sandbox: each use is a question to the grader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lantern_grading.checker.worker import Worker


class Distant:
    """Something that stays with the grader: an object or a function of the instructor's."""

    def __init__(self, worker: Worker, number: int) -> None:
        object.__setattr__(self, "_lantern", (worker, number))

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return object.__getattribute__(self, name)
        worker, number = object.__getattribute__(self, "_lantern")
        kind, value = worker.ask(number, "get", name, [], {})
        return (
            (lambda *args, **kwargs: worker.ask(number, "call", name, args, kwargs)[1]) if kind == "method" else value
        )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} cannot be set: the object belongs to the test.")
