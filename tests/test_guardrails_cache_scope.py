"""The scoped cache against a list of what was sent, and the timing attack against its closed form and against play."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lantern_lib import H100, LANTERN_70B, Replica, step
from lantern_lib.guardrails import cache_scope
from lantern_lib.guardrails.cache_scope import ScopedCache, TimingAttack

FOUR = Replica(H100, tp_size=4)
SETTING = {"public_len": 1500, "secret_len": 500, "noise_seconds": 0.1}


def common(left: list[int], right: list[int]) -> int:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


def test_a_tenant_finds_its_own_prompts_and_public_prefixes_and_nothing_else() -> None:
    """Against the plain rule: the longest common beginning with own prompts, or with a public prefix that was sent."""
    rng = np.random.default_rng(5)
    public = [[1, 2, 3], [1, 2, 3, 1, 1], [4]]
    cache = ScopedCache(100_000, public)
    sent: list[tuple[str, list[int]]] = []
    for _ in range(500):
        tenant = str(rng.integers(3))
        start = public[int(rng.integers(3))] if rng.random() < 0.6 else []
        prompt = start + rng.integers(1, 5, rng.integers(1, 7)).tolist()

        def public_part(tokens: list[int]) -> list[int]:
            return max((p for p in public if tokens[: len(p)] == p), key=len, default=[])

        mine = public_part(prompt)
        own = max((common(prompt, p) for who, p in sent if who == tenant and public_part(p) == mine), default=0)
        shared = max((common(mine, public_part(p)) for _, p in sent), default=0)
        assert cache.match(tenant, prompt) == max(own, shared)
        cache.store(tenant, prompt)
        sent.append((tenant, prompt))


def test_a_shared_cache_tells_everybody() -> None:
    cache = ScopedCache(1000, shared=True)
    cache.store("ana", [1, 2, 3, 4])
    assert cache.match("eve", [1, 2, 3, 9]) == 3


def test_a_prompt_cannot_spell_the_mark_of_a_tenant() -> None:
    cache = ScopedCache(1000)
    cache.store("ana", [1, 2, 3])
    assert cache.match("eve", [1, 2, 3]) == 0
    with pytest.raises(ValueError, match="^tokens must be ids"):
        cache.match("eve", [-1, 1, 2, 3])


def test_the_times_are_those_of_the_step_model() -> None:
    attack = cache_scope.timing_attack(LANTERN_70B, FOUR, **SETTING, shared=True)  # type: ignore[arg-type]
    assert attack.unsent_seconds == step.prefill_step(LANTERN_70B, FOUR, 500, 1500).total_seconds
    assert attack.sent_seconds == step.prefill_step(LANTERN_70B, FOUR, 1, 1999).total_seconds
    assert attack.signal_seconds > 0.02


def test_a_scope_takes_the_signal_away_and_keeps_the_public_prefix() -> None:
    attack = cache_scope.timing_attack(LANTERN_70B, FOUR, **SETTING, shared=False)  # type: ignore[arg-type]
    assert attack.signal_seconds == 0
    assert attack.accuracy(1000) == 0.5
    assert attack.unsent_seconds == step.prefill_step(LANTERN_70B, FOUR, 500, 1500).total_seconds
    assert attack.simulate(16, 20_000, np.random.default_rng(1)) == pytest.approx(0.5, abs=0.015)


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("probes", [1, 4, 16])
def test_the_closed_form_is_what_play_gives(noise: float, probes: int) -> None:
    setting = SETTING | {"noise_seconds": noise}
    attack = cache_scope.timing_attack(LANTERN_70B, FOUR, **setting, shared=True)  # type: ignore[arg-type]
    rng = np.random.default_rng(7)
    right = 0
    for _ in range(4000):
        sent = rng.random() < 0.5
        base = attack.sent_seconds if sent else attack.unsent_seconds
        times = [base + rng.exponential(noise) for _ in range(probes)]
        right += (min(times) < attack.unsent_seconds) == sent
    assert attack.accuracy(probes) == pytest.approx(right / 4000, abs=4 * 0.5 / math.sqrt(4000))
    assert attack.simulate(probes, 20_000, np.random.default_rng(2)) == pytest.approx(
        attack.accuracy(probes), abs=0.015
    )


def test_a_gap_is_longer_than_the_lifetime_as_often_as_drawn_gaps_are() -> None:
    gaps = np.random.default_rng(4).exponential(600, 200_000)
    assert cache_scope.cold_share(1 / 600, 300) == pytest.approx(np.mean(gaps > 300), abs=0.005)
    assert cache_scope.cold_share(0.2, 300) < 1e-20


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="^num_probes"):
        TimingAttack(0.01, 0.02, 0.1).accuracy(0)
    with pytest.raises(ValueError, match="^noise_seconds"):
        cache_scope.timing_attack(LANTERN_70B, FOUR, public_len=10, secret_len=10, noise_seconds=0, shared=True)
    with pytest.raises(ValueError, match="^requests_per_second"):
        cache_scope.cold_share(0, 300)
    with pytest.raises(ValueError, match="^num_cached_tokens"):
        cache_scope.ttft_seconds(LANTERN_70B, FOUR, 10, -1)
