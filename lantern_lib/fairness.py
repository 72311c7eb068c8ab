"""Sharing one engine among tenants: in order of arrival, request by request in turn, or by weighted tokens."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, get_args

from lantern_lib.units import require_int, require_non_negative, require_one_of, require_positive

Policy = Literal["arrival", "requests", "tokens"]


@dataclass(frozen=True)
class TokenWeights:
    """What a token of each kind counts as service: choose ratios of costs, or of prices [weighted tokens]."""

    uncached_input: float = 1.0
    cached_input: float = 0.1
    output: float = 4.0

    def __post_init__(self) -> None:
        require_positive("uncached_input", self.uncached_input)
        require_non_negative("cached_input", self.cached_input)
        require_positive("output", self.output)
        if self.cached_input > self.uncached_input:
            raise ValueError(
                f"cached_input must be at most uncached_input = {self.uncached_input:g}, got {self.cached_input:g}."
                " A hit costs no more than a miss; 0 makes it free."
            )

    def charge(self, uncached_input: int, cached_input: int = 0, output: int = 0) -> float:
        """Return what a request counts.

        Parameters
        ----------
        uncached_input, cached_input, output : int
            Tokens of each kind [tokens].

        Returns
        -------
        float
            Weighted sum [weighted tokens].

        Raises
        ------
        ValueError
            If a count is not a whole number of 0 or more.

        Examples
        --------
        >>> TokenWeights(1, 0.1, 5).charge(500, 1500, 300)
        2150.0
        """
        return (
            require_int("uncached_input", uncached_input, minimum=0) * self.uncached_input
            + require_int("cached_input", cached_input, minimum=0) * self.cached_input
            + require_int("output", output, minimum=0) * self.output
        )


@dataclass(frozen=True)
class TenantRequest:
    """A request of a tenant: when it comes [steps], its lengths, and what of its input is cached [tokens]."""

    tenant: str
    arrival_step: int
    input_len: int
    output_len: int
    num_cached_tokens: int = 0

    def __post_init__(self) -> None:
        require_int("arrival_step", self.arrival_step, minimum=0)
        require_int("input_len", self.input_len)
        require_int("output_len", self.output_len)
        require_int("num_cached_tokens", self.num_cached_tokens, minimum=0)
        if self.num_cached_tokens > self.input_len:
            raise ValueError(
                f"num_cached_tokens must be at most input_len = {self.input_len:,}, got {self.num_cached_tokens:,}."
            )


@dataclass(frozen=True)
class Service:
    """What a run gave to whom.

    ``given`` maps a tenant to its service so far after each step [weighted tokens], ``admitted`` a request's
    number to the step at which it began, and ``backlog`` a tenant to the requests that wait after each step.
    """

    requests: tuple[TenantRequest, ...]
    given: Mapping[str, tuple[float, ...]]
    backlog: Mapping[str, tuple[int, ...]]
    admitted: Mapping[int, int]

    def share(self, tenant: str) -> float:
        """Share of all service that a tenant got by the end [ratio]."""
        return self.given[tenant][-1] / sum(given[-1] for given in self.given.values())

    def waits(self, tenant: str) -> tuple[int, ...]:
        """Steps that each admitted request of a tenant waited [steps]."""
        return tuple(
            step - self.requests[number].arrival_step
            for number, step in sorted(self.admitted.items())
            if self.requests[number].tenant == tenant
        )


@dataclass
class _Engine:
    """Slots, queues and counters of one run."""

    weights: TokenWeights
    shares: Mapping[str, float]
    policy: Policy
    tenants: tuple[str, ...]
    prefill_per_step: int
    waiting: dict[str, deque[tuple[int, TenantRequest]]] = field(init=False)
    counter: dict[str, float] = field(init=False)  # service over share, lifted when a tenant comes back
    given: dict[str, float] = field(init=False)
    turn: dict[str, int] = field(init=False)
    running: list[list[int]] = field(default_factory=list)  # number, prefill steps left, tokens left
    last_left: str | None = None

    def __post_init__(self) -> None:
        self.waiting = {tenant: deque() for tenant in self.tenants}
        self.counter = dict.fromkeys(self.tenants, 0.0)
        self.given = dict.fromkeys(self.tenants, 0.0)
        self.turn = dict.fromkeys(self.tenants, 0)

    def charge(self, tenant: str, service: float) -> None:
        self.given[tenant] += service
        self.counter[tenant] += service / self.shares.get(tenant, 1.0)

    def arrive(self, number: int, request: TenantRequest) -> None:
        queue = self.waiting[request.tenant]
        if not queue:  # a tenant that was away must not have saved up credit
            others = [t for t in self.tenants if self.waiting[t]]
            floor = min((self.counter[t] for t in others), default=None)
            if floor is None and self.last_left is not None:
                floor = self.counter[self.last_left]
            self.counter[request.tenant] = max(self.counter[request.tenant], floor or 0.0)
            self.turn[request.tenant] = max(self.turn[request.tenant], min((self.turn[t] for t in others), default=0))
        queue.append((number, request))

    def next_tenant(self) -> str:
        ready = [tenant for tenant in self.tenants if self.waiting[tenant]]
        if self.policy == "arrival":
            return min(ready, key=lambda t: self.waiting[t][0][0])
        return min(ready, key=lambda t: self.turn[t] if self.policy == "requests" else self.counter[t])

    def admit(self) -> int:
        tenant = self.next_tenant()
        number, request = self.waiting[tenant].popleft()
        if not self.waiting[tenant]:
            self.last_left = tenant
        self.turn[tenant] += 1
        self.charge(
            tenant, self.weights.charge(request.input_len - request.num_cached_tokens, request.num_cached_tokens)
        )
        fresh = max(1, request.input_len - request.num_cached_tokens)
        self.running.append([number, -(-fresh // self.prefill_per_step), request.output_len])
        return number


def serve(
    requests: Sequence[TenantRequest],
    policy: Policy,
    *,
    num_slots: int,
    num_steps: int,
    weights: TokenWeights | None = None,
    shares: Mapping[str, float] | None = None,
    prefill_per_step: int = 512,
) -> Service:
    """Serve tenants' requests by a policy and record the service of each.

    Parameters
    ----------
    requests : sequence of TenantRequest
        Sorted by arrival.
    policy : {"arrival", "requests", "tokens"}
        Whose request begins when a slot is free: the oldest; the tenant with the fewest requests begun; the
        tenant with the least weighted tokens (a virtual token counter).
    num_slots : int
        Requests that run together [count].
    num_steps : int
        Steps of the run [count].
    weights : TokenWeights, optional
        What each kind of token counts.
    shares : mapping of str to float, optional
        What a tenant is entitled to, relative to the others; 1 where left out [ratio].
    prefill_per_step : int
        Input tokens that a slot reads in a step [tokens].

    Returns
    -------
    Service
        The course of the run.

    Raises
    ------
    ValueError
        If there is no request, arrivals fall, the policy is unknown, a count is below 1, or a share is not above 0 or
        that of a tenant without a request.

    Notes
    -----
    Nobody is interrupted and no slot stays empty while somebody waits. Input is charged when a request begins,
    an output token when it is written, since nobody knows before how long an answer will be. A tenant that comes
    back after a pause starts at the least counter among those who wait, so it cannot have saved up turns. The
    counter follows Sheng et al. (2024). Derived on page D4.

    Examples
    --------
    >>> flood = [TenantRequest("agent", 0, 34_500, 300) for _ in range(50)]
    >>> for policy in ("arrival", "requests", "tokens"):
    ...     run = serve([*flood, TenantRequest("chat", 1, 2000, 400)], policy, num_slots=4, num_steps=6000)
    ...     print(policy, run.waits("chat"))
    arrival (4415,)
    requests (367,)
    tokens (367,)
    """
    require_one_of("policy", policy, get_args(Policy))
    if not requests:
        raise ValueError("requests must hold at least one request, got none.")
    if any(late.arrival_step < early.arrival_step for early, late in pairwise(requests)):
        raise ValueError("requests must be sorted by arrival_step. Sort them first.")
    slots, steps = require_int("num_slots", num_slots), require_int("num_steps", num_steps)
    tenants = tuple(dict.fromkeys(request.tenant for request in requests))
    for tenant, share in (shares or {}).items():
        require_one_of("shares", tenant, tenants, "A share of nobody is a name that is spelt wrong.")
        require_positive("shares", share)
    engine = _Engine(
        weights or TokenWeights(), shares or {}, policy, tenants, require_int("prefill_per_step", prefill_per_step)
    )
    coming = deque(enumerate(requests))
    given: dict[str, list[float]] = {tenant: [] for tenant in tenants}
    backlog: dict[str, list[int]] = {tenant: [] for tenant in tenants}
    admitted: dict[int, int] = {}
    for now in range(steps):
        while coming and coming[0][1].arrival_step <= now:
            engine.arrive(*coming.popleft())
        while len(engine.running) < slots and any(engine.waiting.values()):
            admitted[engine.admit()] = now
        _step(engine, requests)
        for tenant in tenants:
            given[tenant].append(engine.given[tenant])
            backlog[tenant].append(len(engine.waiting[tenant]))
    frozen = {tenant: tuple(values) for tenant, values in given.items()}
    return Service(tuple(requests), frozen, {t: tuple(values) for t, values in backlog.items()}, admitted)


def _step(engine: _Engine, requests: Sequence[TenantRequest]) -> None:
    """Let every slot read a part of its prompt or write one token."""
    for slot in engine.running:
        number, reading, _ = slot
        if reading:
            slot[1] -= 1
        else:
            slot[2] -= 1
            engine.charge(requests[number].tenant, engine.weights.output)
    engine.running = [slot for slot in engine.running if slot[2]]


def lag_bound(weights: TokenWeights, max_input_len: int, max_output_len: int, num_slots: int) -> float:
    """Return how far the counters of two tenants with waiting requests can be apart under the token policy.

    Parameters
    ----------
    weights : TokenWeights
        What each kind of token counts.
    max_input_len : int
        Longest prompt [tokens].
    max_output_len : int
        Longest answer [tokens].
    num_slots : int
        Requests that run together [count].

    Returns
    -------
    float
        ``input weight × max_input_len + output weight × max_output_len × num_slots`` for equal shares; for others
        divide it by the smallest share [weighted tokens].

    Raises
    ------
    ValueError
        If a length or a count is below 1.

    Notes
    -----
    It does not grow with time, which is the point. When a tenant was last admitted its counter was the least;
    since then it rose by one prompt and by what its running requests can still write. Derived on page D4.

    Examples
    --------
    >>> lag_bound(TokenWeights(), 34_500, 400, 8)
    47300.0
    """
    prompt = weights.uncached_input * require_int("max_input_len", max_input_len)
    answers = weights.output * require_int("max_output_len", max_output_len) * require_int("num_slots", num_slots)
    return prompt + answers
