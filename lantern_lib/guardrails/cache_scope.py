"""A prefix cache that keeps tenants apart, and the timing attack that shows why it has to.

What is scoped is the **key**: a prompt's tokens are looked up behind a mark that names its tenant, except for
prefixes that the operator has registered as public. Capacity stays shared, so a tenant can still notice that
others fill the cache; who must hide even that needs a cache of his own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lantern_lib import step
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.prefix_tree import PrefixTree
from lantern_lib.units import require_int, require_non_negative, require_positive


class ScopedCache:
    """A prefix cache for many tenants.

    Parameters
    ----------
    capacity_tokens : int
        Tokens that all tenants' entries may take together [tokens].
    public_prefixes : sequence of sequence of int
        Prefixes without customer text, registered by the operator: shared by all. A client cannot name one.
    shared : bool
        Share everything, as a cache without scopes does; for the experiment, and for a single tenant.

    Examples
    --------
    >>> cache = ScopedCache(1000, public_prefixes=[[1, 2, 3]])
    >>> cache.store("ana", [1, 2, 3, 7, 8])
    >>> cache.match("ana", [1, 2, 3, 7, 8]), cache.match("ben", [1, 2, 3, 7, 8])
    (5, 3)
    """

    def __init__(
        self, capacity_tokens: int, public_prefixes: Sequence[Sequence[int]] = (), *, shared: bool = False
    ) -> None:
        self.public_prefixes = [tuple(prefix) for prefix in public_prefixes]
        self.shared = shared
        self._tree = PrefixTree(capacity_tokens)
        self._marks: dict[str, int] = {}

    def match(self, tenant: str, tokens: Sequence[int]) -> int:
        """Return how many leading tokens of a tenant's prompt are cached for this tenant.

        Parameters
        ----------
        tenant : str
            Who, from the authenticated call [text].
        tokens : sequence of int
            The prompt.

        Returns
        -------
        int
            Cached tokens [tokens].
        """
        found = self._tree.match(self.key(tenant, tokens))
        return found if self.shared or found <= self.public_len(tokens) else found - 1  # the mark is no token

    def store(self, tenant: str, tokens: Sequence[int]) -> None:
        """Keep a prompt for its tenant, and its public prefix for all.

        Parameters
        ----------
        tenant : str
            Who [text].
        tokens : sequence of int
            The prompt.
        """
        self._tree.insert(self.key(tenant, tokens))

    def public_len(self, tokens: Sequence[int]) -> int:
        """Return how much of a prompt lies in a registered prefix.

        Parameters
        ----------
        tokens : sequence of int
            The prompt.

        Returns
        -------
        int
            Length of the longest registered prefix that the prompt begins with, whole; 0 if there is none [tokens].
        """
        prompt = tuple(tokens)
        whole = (len(prefix) for prefix in self.public_prefixes if prompt[: len(prefix)] == prefix)
        return max(whole, default=0)

    def key(self, tenant: str, tokens: Sequence[int]) -> tuple[int, ...]:
        """Return what a prompt is looked up by.

        Parameters
        ----------
        tenant : str
            Who [text].
        tokens : sequence of int
            The prompt, of token ids of 0 or more.

        Returns
        -------
        tuple of int
            The public prefix, the tenant's mark, the rest; the prompt alone in a shared cache.

        Raises
        ------
        ValueError
            If a token id is negative: marks are, and a prompt must not spell one.
        """
        prompt = tuple(tokens)
        if any(token < 0 for token in prompt):
            raise ValueError(f"tokens must be ids of 0 or more, got {min(prompt)}. A prompt comes from the tokenizer.")
        if self.shared:
            return prompt
        mark = self._marks.setdefault(tenant, -1 - len(self._marks))
        public = self.public_len(prompt)
        return (*prompt[:public], mark, *prompt[public:])


def cold_share(requests_per_second: float, lifetime_seconds: float) -> float:
    """Return the share of a tenant's requests that find its entry gone.

    Parameters
    ----------
    requests_per_second : float
        Mean rate of the tenant's requests, which arrive at random [1/s].
    lifetime_seconds : float
        Time after the last use at which an entry is dropped [seconds].

    Returns
    -------
    float
        ``exp(−rate × lifetime)``, the chance that a gap between Poisson arrivals is longer [ratio].

    Raises
    ------
    ValueError
        If the rate is not above 0 or the lifetime is negative.

    Notes
    -----
    Requests at equal intervals are all warm if the interval is shorter than the lifetime, else all cold. Eviction
    for want of memory is left out. Used on page E3.

    Examples
    --------
    >>> round(cold_share(1 / 600, 300), 3)
    0.607
    """
    rate = require_positive("requests_per_second", requests_per_second)
    return math.exp(-rate * require_non_negative("lifetime_seconds", lifetime_seconds))


def ttft_seconds(model: ModelConfig, replica: Replica, prompt_len: int, num_cached_tokens: int) -> float:
    """Return the time to first token of a prompt of which a part is cached, without waiting.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine.
    prompt_len : int
        The whole prompt [tokens].
    num_cached_tokens : int
        Its cached beginning; the last token is computed in any case, for it gives the first new one [tokens].

    Returns
    -------
    float
        One prefill step of what is not cached [seconds].

    Raises
    ------
    ValueError
        If a length is out of its range.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica
    >>> four = Replica(H100, tp_size=4)
    >>> [round(ttft_seconds(LANTERN_70B, four, 2000, cached) * 1e3) for cached in (0, 1500, 2000)]
    [162, 42, 14]
    """
    cached = min(
        require_int("num_cached_tokens", num_cached_tokens, minimum=0), require_int("prompt_len", prompt_len) - 1
    )
    return step.prefill_step(model, replica, prompt_len - cached, cached).total_seconds


@dataclass(frozen=True)
class TimingAttack:
    """What an attacker sees who asks whether another tenant has sent a certain prompt.

    ``sent_seconds`` and ``unsent_seconds`` are the times of the attacker's own probe without noise, if the other
    has sent it and if not [seconds]. Noise is exponential with mean ``noise_seconds``, as a wait in a queue is.
    """

    sent_seconds: float
    unsent_seconds: float
    noise_seconds: float

    @property
    def signal_seconds(self) -> float:
        """How much faster the probe is if the other has sent the prompt [seconds]."""
        return self.unsent_seconds - self.sent_seconds

    @property
    def summary(self) -> str:
        """One line with the two times."""
        times = f"{self.sent_seconds * 1e3:.1f} ms if sent, {self.unsent_seconds * 1e3:.1f} ms if not"
        return f"Timing attack: {times}, noise {self.noise_seconds * 1e3:.0f} ms"

    def accuracy(self, num_probes: int) -> float:
        """Return how often the attacker is right about a fair coin.

        Parameters
        ----------
        num_probes : int
            Probes; each needs the other to send again and the attacker's own entry to be gone [count].

        Returns
        -------
        float
            ``1 − exp(−num_probes × signal / noise) / 2``: waiting only adds, so the fastest probe decides, and the
            attacker errs only if the prompt was sent and every probe waited longer than the signal [ratio].

        Raises
        ------
        ValueError
            If `num_probes` is not a whole number of 1 or more.
        """
        probes = require_int("num_probes", num_probes)
        return 1 - math.exp(-probes * self.signal_seconds / self.noise_seconds) / 2

    def simulate(self, num_probes: int, num_trials: int, rng: np.random.Generator) -> float:
        """Return the share of trials in which the attacker guesses right.

        Parameters
        ----------
        num_probes : int
            Probes of each trial [count].
        num_trials : int
            Trials, each with a fair coin for whether the other has sent the prompt [count].
        rng : numpy.random.Generator
            Where chance comes from.

        Returns
        -------
        float
            Right guesses over trials [ratio].

        Raises
        ------
        ValueError
            If a count is not a whole number of 1 or more.
        """
        shape = (require_int("num_trials", num_trials), require_int("num_probes", num_probes))
        sent = rng.random(shape[0]) < 0.5
        base = np.where(sent, self.sent_seconds, self.unsent_seconds)
        fastest = (base[:, None] + rng.exponential(self.noise_seconds, shape)).min(axis=1)
        # The attacker knows the slow time from prompts that nobody else can have sent.
        return float(np.mean((fastest < self.unsent_seconds) == sent))


def timing_attack(
    model: ModelConfig,
    replica: Replica,
    *,
    public_len: int,
    secret_len: int,
    noise_seconds: float,
    shared: bool,
) -> TimingAttack:
    """Let one tenant probe for another's prompt in a cache with or without scopes.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine.
    public_len, secret_len : int
        Tokens that everybody sends, and tokens that the attacker guesses [tokens].
    noise_seconds : float
        Mean of what else delays a probe [seconds].
    shared : bool
        Whether tenants share all entries, or only the public prefix.

    Returns
    -------
    TimingAttack
        The two times, from what the cache really finds.

    Raises
    ------
    ValueError
        If a length is below 1 or the noise is not above 0.

    Notes
    -----
    Both caches are warm with the public prefix. Used on page E3.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica
    >>> setting = {"public_len": 1500, "secret_len": 500, "noise_seconds": 0.1}
    >>> open_cache, scoped = (
    ...     timing_attack(LANTERN_70B, Replica(H100, tp_size=4), **setting, shared=shared) for shared in (True, False)
    ... )
    >>> round(open_cache.signal_seconds * 1e3), scoped.signal_seconds
    (28, 0.0)
    """
    public = list(range(require_int("public_len", public_len)))
    prompt = public + list(range(len(public), len(public) + require_int("secret_len", secret_len)))
    times = []
    for sent in (True, False):
        cache = ScopedCache(4 * len(prompt), [public], shared=shared)
        cache.store("somebody", public)
        if sent:
            cache.store("victim", prompt)
        times.append(ttft_seconds(model, replica, len(prompt), cache.match("attacker", prompt)))
    return TimingAttack(times[0], times[1], require_positive("noise_seconds", noise_seconds))
