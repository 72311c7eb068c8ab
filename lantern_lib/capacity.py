"""How many replicas a traffic needs, what the fleet costs, and what a user of it sees.

Decode and prefill take turns on the same GPUs: their demands add up. That is the floor without overlap, and
without a schedule; what a real schedule does to it is for a simulation.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from lantern_lib import kv_cache, step
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.units import format_quantity, require_fraction, require_int, require_positive, round_up

SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class Traffic:
    """Equal requests that arrive at a steady rate.

    Parameters
    ----------
    arrival_rate : float
        Requests that arrive in a second [1/s].
    prompt_len : int
        Tokens of each prompt, cached ones included [tokens].
    output_len : int
        Tokens of each answer [tokens].
    num_cached_tokens : int
        First tokens of each prompt that a prefix cache already holds [tokens].

    Examples
    --------
    >>> Traffic(20, 2000, 400).context_len, Traffic(20, 2000, 400, num_cached_tokens=1500).num_new_tokens
    (2400, 500)
    """

    arrival_rate: float
    prompt_len: int
    output_len: int
    num_cached_tokens: int = 0

    def __post_init__(self) -> None:
        require_positive("arrival_rate", self.arrival_rate, "Give requests per second.")
        require_int("prompt_len", self.prompt_len)
        require_int("output_len", self.output_len)
        require_int("num_cached_tokens", self.num_cached_tokens, minimum=0)
        if self.num_cached_tokens >= self.prompt_len:
            raise ValueError(
                f"num_cached_tokens must be below prompt_len = {self.prompt_len:,}, got {self.num_cached_tokens:,}."
                " The last token of a prompt is computed even when all others are cached: it gives the first answer."
            )

    @property
    def context_len(self) -> int:
        """Tokens that a conversation holds at its end; memory has to be there for all of them [tokens]."""
        return self.prompt_len + self.output_len

    @property
    def num_new_tokens(self) -> int:
        """Prompt tokens that have to be computed [tokens]."""
        return self.prompt_len - self.num_cached_tokens

    @property
    def output_tokens_per_second(self) -> float:
        """Tokens that all users together are sent [tokens/s]."""
        return self.arrival_rate * self.output_len

    @property
    def tokens_per_second(self) -> float:
        """Prompt and answer tokens together, cached ones included [tokens/s]."""
        return self.arrival_rate * self.context_len

    @property
    def summary(self) -> str:
        """One line that names the traffic."""
        cached = f" ({self.num_cached_tokens:,} cached)" if self.num_cached_tokens else ""
        prompts = f"prompts of {self.prompt_len:,}{cached}"
        return f"{self.arrival_rate:g} requests/s, {prompts}, answers of {self.output_len:,}"


@dataclass(frozen=True)
class Demand:
    """What a traffic asks of a kind of replica, before anything is rounded.

    ``decode`` is the step of the largest batch that fits and ``prefill`` the step of one prompt.
    """

    model: ModelConfig
    replica: Replica
    traffic: Traffic
    decode: step.StepCost
    prefill: step.StepCost

    @property
    def decode_replicas(self) -> float:
        """Replicas that do nothing but write answers, each at its full batch [count]."""
        return self.traffic.output_tokens_per_second / self.decode.tokens_per_second

    @property
    def prefill_replicas(self) -> float:
        """Replicas that do nothing but read prompts [count]."""
        return self.traffic.arrival_rate * self.prefill.total_seconds

    @property
    def replicas(self) -> float:
        """The sum of both [count]."""
        return self.decode_replicas + self.prefill_replicas

    @property
    def prefill_share(self) -> float:
        """Share of the busy time that goes to prompts [ratio]."""
        return self.prefill_replicas / self.replicas

    @property
    def requests_per_second(self) -> float:
        """Requests that one replica serves when it is never idle [1/s]."""
        return self.traffic.arrival_rate / self.replicas

    @property
    def summary(self) -> str:
        """One line with both demands."""
        return (
            f"{self.traffic.summary}: {self.decode_replicas:.2f} replicas decode, {self.prefill_replicas:.2f} prefill;"
            f" {self.decode.description}; {self.prefill.description}"
        )


def fleet_demand(model: ModelConfig, replica: Replica, traffic: Traffic, *, attend_cached: bool = True) -> Demand:
    """Return how many replicas a traffic keeps busy.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        One replica.
    traffic : Traffic
        The requests.
    attend_cached : bool
        Whether the new tokens of a prompt attend to the cached ones, as they do. Without it the rest of a
        prompt is priced as a short prompt of its own, a common simplification.

    Returns
    -------
    Demand
        Decode and prefill, in replicas.

    Raises
    ------
    ValueError
        If not even one conversation fits on the replica.

    Notes
    -----
    ``decode = λ o / R(B)`` with ``R(B)`` the tokens per second of the largest batch that fits at the full
    context, and ``prefill = λ t_p``. Every token of an answer is a decode step here, the first one too, and every
    step is priced at the context the conversation ends with; both err on the safe side. A cached prefix saves its
    prefill; the memory it saves by being held once is not counted. Derived on page C3.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> found = fleet_demand(LANTERN_70B, Replica(H100, tp_size=4), Traffic(20, 2000, 400))
    >>> round(found.decode_replicas, 2), round(found.prefill_replicas, 2), round(found.prefill_share, 2)
    (1.27, 3.24, 0.72)
    """
    fits = kv_cache.memory_budget(model, replica).conversations(traffic.context_len)
    if not fits:
        raise ValueError(
            f"tp_size must be large enough for the weights and one conversation of {traffic.context_len:,} tokens,"
            f" got {replica.tp_size}. Add GPUs, or store the weights in fewer bytes."
        )
    seen = traffic.num_cached_tokens if attend_cached else 0
    return Demand(
        model,
        replica,
        traffic,
        step.decode_step(model, replica, fits, traffic.context_len),
        step.prefill_step(model, replica, traffic.num_new_tokens, seen),
    )


@dataclass(frozen=True)
class Load:
    """What goes on in each replica of a fleet, on average.

    ``batch_size`` is the mean number of conversations being decoded [sequences], ``step_seconds`` their step,
    ``prefill_share`` the part of all time that prompts take [ratio], and ``tpot_seconds`` the mean time between
    two tokens that a user sees.
    """

    batch_size: float
    step_seconds: float
    prefill_share: float
    tpot_seconds: float

    @property
    def summary(self) -> str:
        """One line that names the state."""
        each, gap = (format_quantity(seconds, "ms", 1) for seconds in (self.step_seconds, self.tpot_seconds))
        return f"batch {self.batch_size:.1f}, step {each}, prompts {self.prefill_share:.0%}: a token every {gap}"


def steady_load(demand: Demand, num_replicas: int) -> Load:
    """Return the batch and the time per token at which a fleet settles.

    Parameters
    ----------
    demand : Demand
        The traffic and the replica.
    num_replicas : int
        Replicas that share the requests evenly [count].

    Returns
    -------
    Load
        The state of each replica.

    Raises
    ------
    ValueError
        If `num_replicas` is no whole number of 1 or more, or too few for the traffic.

    Notes
    -----
    With ``f`` the share of time that prompts take, a decode step of ``T(B)`` seconds comes round every
    ``T(B) / (1 − f)``. By Little's law ``B = (λ / N) o T(B) / (1 − f)`` conversations are then being decoded. The
    smallest solution is found: the batch grows until it keeps up. Between whole batches ``T`` is taken as straight.
    Below one conversation on average a step has one. Mean values: no fluctuation, no waiting. Derived on page C3.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> demand = fleet_demand(LANTERN_70B, Replica(H100, tp_size=4), Traffic(20, 2000, 400))
    >>> load = steady_load(demand, 5)
    >>> round(load.batch_size), round(load.tpot_seconds * 1e3)
    (103, 65)
    """
    require_int("num_replicas", num_replicas)
    if num_replicas < round_up(demand.replicas):
        raise ValueError(
            f"num_replicas must be at least {round_up(demand.replicas)} for {demand.traffic.summary},"
            f" got {num_replicas}. The queue would grow for ever."
        )
    share = demand.prefill_replicas / num_replicas
    # Tokens per second that a replica has to write while it decodes.
    pace = demand.traffic.output_tokens_per_second / num_replicas / (1 - share)
    batch, seconds = _batch_that_keeps_up(demand, pace)
    return Load(batch, seconds, share, seconds / (1 - share))


def _batch_that_keeps_up(demand: Demand, tokens_per_second: float) -> tuple[float, float]:
    """Return the smallest batch, not always a whole one, that writes so fast, and its step [seconds]."""

    def cost(batch: int) -> step.StepCost:
        return step.decode_step(demand.model, demand.replica, batch, demand.traffic.context_len)

    # Throughput rises with the batch, since a part of every step is shared.
    most = demand.decode.num_tokens
    upper = 1 + bisect_left(range(1, most), tokens_per_second, key=lambda batch: cost(batch).tokens_per_second)
    if upper == 1:
        alone = cost(1).total_seconds
        return tokens_per_second * alone, alone
    lower = upper - 1
    base = cost(lower).total_seconds
    slope = cost(upper).total_seconds - base
    batch = tokens_per_second * (base - lower * slope) / (1 - tokens_per_second * slope)
    return batch, base + (batch - lower) * slope


def dollars_per_million(
    dollars_per_gpu_hour: float, num_gpus: int, tokens_per_second: float, utilization: float = 1.0
) -> float:
    """Return what a million tokens cost on GPUs that are paid by the hour.

    Parameters
    ----------
    dollars_per_gpu_hour : float
        Price of one GPU for an hour [dollars].
    num_gpus : int
        GPUs that are paid [count].
    tokens_per_second : float
        Tokens that they make together while busy, of the kind that the price is for [tokens/s].
    utilization : float
        Share of the paid time that they are busy, in (0, 1] [ratio].

    Returns
    -------
    float
        Price of a million of those tokens [dollars].

    Raises
    ------
    ValueError
        If a number is not above 0, `num_gpus` is not whole or `utilization` is outside (0, 1].

    Notes
    -----
    ``10⁶ p g / (3600 R ρ)``. ``R`` must be the rate of the whole work, prompts included: with the rate of decode
    alone the price leaves the prompts out. Page C3.

    Examples
    --------
    >>> round(dollars_per_million(3.0, 20, tokens_per_second=8000), 2)
    2.08
    """
    price = require_positive("dollars_per_gpu_hour", dollars_per_gpu_hour)
    require_int("num_gpus", num_gpus)
    rate = require_positive("tokens_per_second", tokens_per_second)
    return 1e6 * price * num_gpus / (SECONDS_PER_HOUR * rate * require_fraction("utilization", utilization))


@dataclass(frozen=True)
class Plan:
    """A fleet for a traffic: whole replicas, at most so busy.

    ``max_utilization`` is the share of time that a replica may be busy [ratio] and ``num_replicas`` what that needs
    [count].
    """

    demand: Demand
    max_utilization: float
    num_replicas: int

    @property
    def num_gpus(self) -> int:
        """GPUs of all replicas [count]."""
        return self.num_replicas * self.demand.replica.tp_size

    @property
    def utilization(self) -> float:
        """Share of time that a replica really is busy; rounding up leaves it below the allowed one [ratio]."""
        return self.demand.replicas / self.num_replicas

    @property
    def load(self) -> Load:
        """The batch and the time per token that the traffic settles at."""
        return steady_load(self.demand, self.num_replicas)

    def dollars_per_hour(self, dollars_per_gpu_hour: float) -> float:
        """Return the price of the fleet.

        Parameters
        ----------
        dollars_per_gpu_hour : float
            Price of one GPU for an hour [dollars].

        Returns
        -------
        float
            All GPUs for an hour [dollars].
        """
        return require_positive("dollars_per_gpu_hour", dollars_per_gpu_hour) * self.num_gpus

    def dollars_per_million(self, dollars_per_gpu_hour: float, *, blended: bool = False) -> float:
        """Return what a million tokens cost at this traffic.

        Parameters
        ----------
        dollars_per_gpu_hour : float
            Price of one GPU for an hour [dollars].
        blended : bool
            Count prompt and answer tokens together, cached ones included; without it only answer tokens are
            counted, and they carry the cost of the prompts.

        Returns
        -------
        float
            Price of a million tokens [dollars].
        """
        traffic = self.demand.traffic
        rate = traffic.tokens_per_second if blended else traffic.output_tokens_per_second
        return dollars_per_million(dollars_per_gpu_hour, self.num_gpus, rate)

    @property
    def summary(self) -> str:
        """One line that names the plan."""
        return (
            f"{self.num_replicas} × ({self.demand.replica.summary}) for {self.demand.traffic.summary},"
            f" {self.utilization:.0%} busy of at most {self.max_utilization:.0%}"
        )


def plan_fleet(
    model: ModelConfig,
    replica: Replica,
    traffic: Traffic,
    *,
    max_utilization: float = 1.0,
    attend_cached: bool = True,
) -> Plan:
    """Return the smallest fleet of whole replicas that serves a traffic.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        One replica; a fleet has whole ones.
    traffic : Traffic
        The requests.
    max_utilization : float
        Share of time that a replica may be busy, in (0, 1]; the rest is headroom [ratio].
    attend_cached : bool
        As in :func:`fleet_demand`.

    Returns
    -------
    Plan
        The fleet.

    Raises
    ------
    ValueError
        If not one conversation fits on a replica, or `max_utilization` is outside (0, 1].

    Notes
    -----
    ``ceil(demand / max_utilization)``. A spare for a replica that fails is not in it. Derived on page C3.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> four = Replica(H100, tp_size=4)
    >>> plan = plan_fleet(LANTERN_70B, four, Traffic(20, 2000, 400, num_cached_tokens=1500), max_utilization=0.65)
    >>> plan.num_replicas, plan.num_gpus, round(plan.dollars_per_million(3.0), 2)
    (4, 16, 1.67)
    """
    require_fraction("max_utilization", max_utilization, "0.65 keeps 35 percent free.")
    demand = fleet_demand(model, replica, traffic, attend_cached=attend_cached)
    return Plan(demand, max_utilization, round_up(demand.replicas / max_utilization))
