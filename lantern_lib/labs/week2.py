"""Week 2: what stands in for a student's functions. Requests are the lab's own records, so only fields are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lantern_lib import admission

#: Library modules that a student may use besides those of every week.
ALLOWED: frozenset[str] = frozenset({"workload", "workload.lengths"})


def _known(request: Any) -> admission.Request:
    return admission.Request(request.prompt_len, request.output_len, request.arrival_step)


def _may_enter(request: Any, running: Sequence[Any], num_slots: int, capacity_tokens: int) -> bool:
    # Asked very often with all slots taken: then nothing is added up.
    if len(running) >= num_slots:
        return False
    return sum(_known(each).final_len for each in [*running, request]) <= capacity_tokens


STAND_INS: dict[str, Callable[..., Any]] = {
    "projected_tokens": lambda request: _known(request).final_len,
    "never_fits": lambda request, capacity_tokens: admission.rejection(_known(request), capacity_tokens) is not None,
    "may_enter": _may_enter,
}
