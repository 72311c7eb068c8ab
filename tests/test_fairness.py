"""The scheduler over tenants: what it conserves, what it bounds, and who waits for whom."""

from __future__ import annotations

import numpy as np
import pytest

from lantern_lib import fairness
from lantern_lib.fairness import Policy, Service, TenantRequest, TokenWeights, serve

POLICIES: tuple[Policy, ...] = ("arrival", "requests", "tokens")
AGENT = TenantRequest("agent", 0, 34_500, 300)
CHAT = TenantRequest("chat", 1, 2_000, 400)


def random_requests(seed: int, pauses: bool) -> list[TenantRequest]:
    rng = np.random.default_rng(seed)
    found = []
    for tenant in ("a", "b", "c"):
        now = 0
        for _ in range(150):
            now += int(rng.integers(0, 12)) + (int(rng.integers(300)) if pauses and rng.random() < 0.05 else 0)
            length = int(rng.integers(1, 3000))
            found.append(TenantRequest(tenant, now, length, int(rng.integers(1, 60)), int(rng.integers(0, length + 1))))
    return sorted(found, key=lambda r: r.arrival_step)


def always_waiting(run: Service, tenants: tuple[str, ...], steps: range) -> bool:
    return all(run.backlog[tenant][step] > 0 for tenant in tenants for step in steps)


@pytest.mark.parametrize("policy", POLICIES)
def test_all_requests_are_served_and_all_service_is_charged(policy: Policy) -> None:
    """Run to the end: the service is the sum over the requests, whoever went first."""
    requests = random_requests(1, pauses=True)
    run = serve(requests, policy, num_slots=4, num_steps=20_000)
    assert len(run.admitted) == len(requests)
    for tenant in "abc":
        due = sum(
            (r.input_len - r.num_cached_tokens) + 0.1 * r.num_cached_tokens + 4 * r.output_len
            for r in requests
            if r.tenant == tenant
        )
        assert run.given[tenant][-1] == pytest.approx(due)
    assert all(step >= requests[number].arrival_step for number, step in run.admitted.items())


@pytest.mark.parametrize("policy", POLICIES)
def test_no_slot_is_empty_while_somebody_waits(policy: Policy) -> None:
    """The busy slots of each step, found from admissions and lengths alone."""
    requests = random_requests(2, pauses=True)
    run = serve(requests, policy, num_slots=3, num_steps=6000, prefill_per_step=100)
    busy = np.zeros(6000, int)
    for number, start in run.admitted.items():
        fresh = requests[number].input_len - requests[number].num_cached_tokens
        busy[start : start + max(1, -(-fresh // 100)) + requests[number].output_len] += 1
    assert busy.max() == 3
    for step in range(6000):
        if any(run.backlog[tenant][step] for tenant in "abc"):
            assert busy[step] == 3


def test_first_come_is_first_served() -> None:
    run = serve(random_requests(3, pauses=False), "arrival", num_slots=2, num_steps=3000)
    order = sorted(run.admitted, key=lambda number: (run.admitted[number], number))
    assert order == list(range(len(order)))


@pytest.mark.parametrize("policy", ["requests", "tokens"])
def test_an_agents_flood_does_not_starve_a_chat_user(policy: Policy) -> None:
    """A chat request waits for the next free slot, however long the agent's queue is."""
    waits = []
    for flood in (10, 100, 400):
        requests = [AGENT] * flood + [CHAT]
        fair = serve(requests, policy, num_slots=4, num_steps=2000).waits("chat")
        queue = serve(requests, "arrival", num_slots=4, num_steps=2000).waits("chat")
        waits.append(fair)
        assert not queue or queue[0] >= (flood // 4 - 1) * 300
    assert waits[0] == waits[1] == waits[2] == (-(-34_500 // 512) + 300 - 1,)


def test_by_requests_the_agent_gets_what_its_requests_weigh_and_by_tokens_half() -> None:
    both = [AGENT, TenantRequest("chat", 0, 2_000, 400)] * 300
    turns = serve(both, "requests", num_slots=12, num_steps=8000).share("chat")
    assert turns == pytest.approx((2_000 + 1_600) / (2_000 + 1_600 + 34_500 + 1_200), abs=0.005)
    assert serve(both, "tokens", num_slots=12, num_steps=8000).share("chat") == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("seed", range(6))
def test_the_lag_of_tenants_who_wait_is_bounded(seed: int) -> None:
    """Between any two moments of a time in which all wait: twice the bound, once for each end."""
    weights = TokenWeights(1.0, 0.1, 4.0)
    run = serve(random_requests(seed, pauses=False), "tokens", num_slots=4, num_steps=1500, weights=weights)
    begin = next(step for step in range(1500) if always_waiting(run, ("a", "b", "c"), range(step, 1500)))
    assert begin < 300
    given = np.array([run.given[tenant][begin:] for tenant in "abc"])
    bound = fairness.lag_bound(weights, 3000, 60, 4)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        lag = given[one] - given[other]
        assert lag.max() - lag.min() <= 2 * bound
    assert (given[:, -1] - given[:, 0]).min() > 10 * bound  # so the bound says something


def test_the_lag_by_requests_grows_past_every_bound() -> None:
    both = [TenantRequest("long", 0, 3000, 60), TenantRequest("short", 0, 30, 6)] * 3000
    bound = fairness.lag_bound(TokenWeights(), 3000, 60, 4)
    for policy, fair in (("requests", False), ("tokens", True)):
        run = serve(both, policy, num_slots=4, num_steps=4000)
        assert always_waiting(run, ("long", "short"), range(4000))
        lags = [abs(a - b) for a, b in zip(run.given["long"], run.given["short"], strict=True)]
        assert (max(lags) <= bound) == fair


def test_a_tenant_that_was_away_has_saved_up_nothing() -> None:
    """After a pause the sleeper shares from now on; without the lift it would have the engine to itself."""
    busy = [TenantRequest("busy", 0, 1000, 20)] * 4000
    late = [TenantRequest("sleeper", 3000, 1000, 20)] * 4000
    early = [TenantRequest("sleeper", 0, 1000, 20)]
    run = serve([*early, *busy, *late], "tokens", num_slots=4, num_steps=6000)
    gained = {t: run.given[t][5999] - run.given[t][2999] for t in run.given}
    assert gained["sleeper"] == pytest.approx(gained["busy"], rel=0.05)


def test_shares_divide_the_service() -> None:
    both = [TenantRequest("gold", 0, 1000, 20), TenantRequest("plain", 0, 1000, 20)] * 4000
    run = serve(both, "tokens", num_slots=4, num_steps=6000, shares={"gold": 3.0})
    assert run.share("gold") == pytest.approx(0.75, abs=0.01)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="^policy must be one of arrival, requests, tokens"):
        serve([CHAT], "fair", num_slots=1, num_steps=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="^requests must hold"):
        serve([], "tokens", num_slots=1, num_steps=1)
    with pytest.raises(ValueError, match="^requests must be sorted"):
        serve([CHAT, AGENT], "tokens", num_slots=1, num_steps=1)
    with pytest.raises(ValueError, match="^shares must be"):
        serve([CHAT], "tokens", num_slots=1, num_steps=1, shares={"chat": 0.0})
    with pytest.raises(ValueError, match="^shares must be one of chat, got 'chats'"):
        serve([CHAT], "tokens", num_slots=1, num_steps=1, shares={"chats": 2.0})
    with pytest.raises(ValueError, match="^num_cached_tokens must be at most input_len"):
        TenantRequest("a", 0, 5, 5, 6)
    with pytest.raises(ValueError, match="^output must be"):
        TokenWeights(output=0.0)
