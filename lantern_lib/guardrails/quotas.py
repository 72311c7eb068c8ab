"""Token quotas per tenant: reserve the worst case before a request runs, settle what it used after.

A quota in requests counts a long prompt like a short one. A quota that is charged at the end lets any number of
requests start at once, all within the same remainder. So it counts tokens, and it reserves.
"""

from __future__ import annotations

import itertools
import math
import threading
from dataclasses import dataclass

from lantern_lib.fairness import TokenWeights
from lantern_lib.units import require_int, require_non_negative, require_positive


@dataclass(frozen=True)
class Reservation:
    """A granted request: ``amount`` quota tokens are set aside until it is settled."""

    number: int
    tenant: str
    prompt_len: int
    max_tokens: int
    amount: float


@dataclass(frozen=True)
class Refusal:
    """A request that has to wait: ``retry_after_seconds`` at least, infinite if it can never fit [seconds]."""

    tenant: str
    retry_after_seconds: float


@dataclass
class _Bucket:
    level: float
    updated: float


class TokenQuota:
    """A token bucket for each tenant; safe to use from many threads.

    Parameters
    ----------
    capacity_tokens : float
        What a tenant that was idle may spend at once [quota tokens].
    refill_tokens_per_second : float
        What comes back [quota tokens/s].
    weights : TokenWeights
        What a token of each kind counts.

    Notes
    -----
    In ``T`` seconds from a moment at which nothing of it runs, a tenant spends at most ``capacity + refill T``,
    however many requests run at once; if some run, what is reserved for them may come back and be spent too. A
    reservation that is never settled stays spent: a crash costs the tenant tokens, never the fleet its protection.
    The clock is an argument, and a time before the last one seen counts as that one. Used on page E3.

    Examples
    --------
    >>> quota = TokenQuota(10_000, 100, TokenWeights(1, 0.1, 5))
    >>> first = quota.reserve("ana", prompt_len=2000, max_tokens=1000, now=0.0)
    >>> first.amount, quota.level("ana", now=0.0)
    (7000.0, 3000.0)
    >>> quota.reserve("ana", prompt_len=2000, max_tokens=1000, now=0.0)
    Refusal(tenant='ana', retry_after_seconds=40.0)
    >>> quota.settle(first, cached_input=1500, output=300, now=0.0)
    2150.0
    >>> quota.level("ana", now=0.0)
    7850.0
    """

    def __init__(self, capacity_tokens: float, refill_tokens_per_second: float, weights: TokenWeights) -> None:
        self.capacity = require_positive("capacity_tokens", capacity_tokens)
        self.refill = require_positive("refill_tokens_per_second", refill_tokens_per_second)
        self.weights = weights
        self._buckets: dict[str, _Bucket] = {}
        self._open: dict[int, Reservation] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def level(self, tenant: str, now: float) -> float:
        """Return what a tenant may still reserve.

        Parameters
        ----------
        tenant : str
            Who, from the authenticated call and not from its text [text].
        now : float
            The time [seconds].

        Returns
        -------
        float
            The bucket's level [quota tokens].
        """
        with self._lock:
            return self._refilled(tenant, now).level

    def reserve(self, tenant: str, prompt_len: int, max_tokens: int, now: float) -> Reservation | Refusal:
        """Set aside the most that a request can count, or refuse it.

        Parameters
        ----------
        tenant : str
            Who [text].
        prompt_len : int
            Tokens of the prompt, all taken as uncached [tokens].
        max_tokens : int
            Longest answer; the engine has to stop there [tokens].
        now : float
            The time [seconds].

        Returns
        -------
        Reservation or Refusal
            What to settle later, or how long to wait.

        Raises
        ------
        ValueError
            If a length is not a whole number of 1 or more, or the time is no finite number of 0 or more.
        """
        prompt = require_int("prompt_len", prompt_len)
        answer = require_int("max_tokens", max_tokens, hint="An answer without a limit cannot be reserved.")
        amount = self.weights.charge(prompt, 0, answer)
        with self._lock:
            bucket = self._refilled(tenant, now)
            if amount > bucket.level:
                wait = (amount - bucket.level) / self.refill if amount <= self.capacity else math.inf
                return Refusal(tenant, wait)
            bucket.level -= amount
            granted = Reservation(next(self._numbers), tenant, prompt, answer, amount)
            self._open[granted.number] = granted
            return granted

    def settle(self, reservation: Reservation, cached_input: int, output: int, now: float) -> float:
        """Charge what a request used and give the rest of its reserve back.

        Parameters
        ----------
        reservation : Reservation
            What :meth:`reserve` returned, once.
        cached_input : int
            Prompt tokens that came from the cache [tokens].
        output : int
            Tokens written, also for a request that was broken off [tokens].
        now : float
            The time [seconds].

        Returns
        -------
        float
            The charge [quota tokens].

        Raises
        ------
        ValueError
            If it is not open any more, or more is said to be used than was reserved.
        """
        cached = require_int("cached_input", cached_input, minimum=0)
        written = require_int("output", output, minimum=0)
        if cached > reservation.prompt_len or written > reservation.max_tokens:
            raise ValueError(
                f"cached_input and output must be at most {reservation.prompt_len:,} and {reservation.max_tokens:,},"
                f" got {cached:,} and {written:,}. The engine has to stop at max_tokens."
            )
        charge = self.weights.charge(reservation.prompt_len - cached, cached, written)
        with self._lock:
            bucket = self._refilled(reservation.tenant, now)
            if self._open.pop(reservation.number, None) != reservation:
                raise ValueError(f"reservation must be open, got number {reservation.number}. Settle each one once.")
            bucket.level = min(self.capacity, bucket.level + reservation.amount - charge)
        return charge

    def _refilled(self, tenant: str, now: float) -> _Bucket:
        time = require_non_negative("now", now)
        bucket = self._buckets.setdefault(tenant, _Bucket(self.capacity, time))
        passed = max(0.0, time - bucket.updated)
        bucket.level = min(self.capacity, bucket.level + passed * self.refill)
        bucket.updated = max(bucket.updated, time)
        return bucket
