"""Mixture of experts: what is stored, what one token uses, and what a batch touches."""

from __future__ import annotations

from dataclasses import dataclass

from lantern_lib.collectives import all_to_all_seconds
from lantern_lib.hardware import Link, Replica
from lantern_lib.model_parts import expected_experts as expected_experts
from lantern_lib.units import require_fraction, require_int, require_positive


@dataclass(frozen=True)
class ExpertConfig:
    """A model whose feed-forward blocks are experts.

    Parameters
    ----------
    name : str
        What the model is called.
    total_parameters, active_parameters : float
        Stored weights, and those that one token uses [count].
    num_experts, experts_per_token : int
        Routed experts of a layer, and how many of them a token goes to [count].
    num_expert_layers : int
        Layers that have experts [count].
    hidden_size : int
        Width of a token's vector [count].
    weight_bytes : float
        Bytes of one stored weight [bytes].
    source : str
        Where the shape comes from.

    Raises
    ------
    ValueError
        If the active part is larger than the whole or smaller than the chosen experts, or a field is out of range.

    Examples
    --------
    >>> DEEPSEEK_V3.active_parameters / DEEPSEEK_V3.total_parameters < 0.06
    True
    """

    name: str
    total_parameters: float
    active_parameters: float
    num_experts: int
    experts_per_token: int
    num_expert_layers: int
    hidden_size: int
    weight_bytes: float = 1.0
    source: str = ""

    def __post_init__(self) -> None:
        for field in ("num_experts", "experts_per_token", "num_expert_layers", "hidden_size"):
            require_int(field, getattr(self, field))
        for field in ("total_parameters", "active_parameters", "weight_bytes"):
            require_positive(field, getattr(self, field))
        if self.experts_per_token >= self.num_experts:
            raise ValueError(
                f"experts_per_token must be below num_experts ({self.num_experts}), got {self.experts_per_token}."
                " A model that uses every expert is dense."
            )
        low = self.total_parameters * self.experts_per_token / self.num_experts
        if not low <= self.active_parameters < self.total_parameters:
            raise ValueError(
                f"active_parameters must be from {low:,.0f} (the chosen experts) to below {self.total_parameters:,.0f},"
                f" got {self.active_parameters:,.0f}."
            )

    @property
    def expert_parameters(self) -> float:
        """Weights of all routed experts, from the two totals and the share that is chosen [count]."""
        unused = self.total_parameters - self.active_parameters
        return unused / (1 - self.experts_per_token / self.num_experts)

    @property
    def summary(self) -> str:
        """One line that names the model."""
        return (
            f"{self.name}: {self.total_parameters / 1e9:,.0f} billion stored,"
            f" {self.active_parameters / 1e9:,.0f} billion for a token,"
            f" {self.experts_per_token} of {self.num_experts} experts, {self.weight_bytes:g}-byte weights"
        )


DEEPSEEK_V3 = ExpertConfig(
    name="DeepSeek-V3",
    total_parameters=671e9,
    active_parameters=37e9,
    num_experts=256,
    experts_per_token=8,
    num_expert_layers=58,
    hidden_size=7168,
    source="DeepSeek-V3 technical report, arXiv:2412.19437, as quoted by others",
)


def stored_weight_bytes(model: ExpertConfig) -> float:
    """Return the memory that the weights take: all of them.

    Parameters
    ----------
    model : ExpertConfig
        The model.

    Returns
    -------
    float
        Stored weights [bytes].

    Examples
    --------
    >>> stored_weight_bytes(DEEPSEEK_V3) / 1e9
    671.0
    """
    return model.total_parameters * model.weight_bytes


def memory_left_bytes(model: ExpertConfig, replica: Replica, *, reserve: float = 0.1) -> float:
    """Return what the weights leave for the cache.

    Parameters
    ----------
    model : ExpertConfig
        The model.
    replica : Replica
        The machine.
    reserve : float
        Share of all memory kept free, in [0, 1); 0 counts everything as usable [ratio].

    Returns
    -------
    float
        Pool for the cache, 0 when the model does not fit [bytes].

    Raises
    ------
    ValueError
        If `reserve` is outside [0, 1).

    Notes
    -----
    Lantern's rule of page A4. Page B6.

    Examples
    --------
    >>> from lantern_lib.hardware import H200
    >>> p5e = Replica(H200, tp_size=8)
    >>> round(memory_left_bytes(DEEPSEEK_V3, p5e) / 1e9), round(memory_left_bytes(DEEPSEEK_V3, p5e, reserve=0) / 1e9)
    (344, 457)
    """
    share = require_fraction("reserve", reserve, "0.1 keeps ten percent free.", zero=True)
    return max(0.0, (1 - share) * replica.memory_bytes - stored_weight_bytes(model))


def token_flops(model: ExpertConfig) -> float:
    """Return the arithmetic of one token in the matrices, attention over the cache left aside.

    Parameters
    ----------
    model : ExpertConfig
        The model.

    Returns
    -------
    float
        Two operations for each active weight [FLOPs].

    Examples
    --------
    >>> token_flops(DEEPSEEK_V3) / 1e9
    74.0
    """
    return 2 * model.active_parameters


def streamed_weight_bytes(model: ExpertConfig, batch_size: int) -> float:
    """Return the weights that a decode step of a batch reads, on average.

    Parameters
    ----------
    model : ExpertConfig
        The model.
    batch_size : int
        Sequences decoded together [sequences].

    Returns
    -------
    float
        The part that every token uses, and the experts that any token uses [bytes].

    Raises
    ------
    ValueError
        If `batch_size` is no whole number of 1 or more.

    Notes
    -----
    At batch 1 the active weights, at a large batch all of them. Page B6.

    Examples
    --------
    >>> round(streamed_weight_bytes(DEEPSEEK_V3, 1) / 1e9), round(streamed_weight_bytes(DEEPSEEK_V3, 64) / 1e9)
    (37, 585)
    """
    touched = expected_experts(model.num_experts, model.experts_per_token, batch_size) / model.num_experts
    common = model.total_parameters - model.expert_parameters
    return (common + touched * model.expert_parameters) * model.weight_bytes


def exchange_seconds(model: ExpertConfig, tokens_per_rank: int, num_ranks: int, link: Link) -> float:
    """Return the communication of one step when experts lie on different GPUs.

    Parameters
    ----------
    model : ExpertConfig
        The model.
    tokens_per_rank : int
        Tokens of the step on each GPU [tokens].
    num_ranks : int
        GPUs that share the experts [count].
    link : Link
        Their connection.

    Returns
    -------
    float
        Two exchanges in each layer with experts: tokens go there and come back [seconds].

    Raises
    ------
    ValueError
        If a number is no whole one of 1 or more.

    Notes
    -----
    A token's 16-bit vector is sent once for each expert it goes to. Page B6.

    Examples
    --------
    >>> from lantern_lib.hardware import NVLINK_4
    >>> round(exchange_seconds(DEEPSEEK_V3, 8, 8, NVLINK_4) * 1e3, 2)
    1.13
    """
    require_int("tokens_per_rank", tokens_per_rank)
    message = tokens_per_rank * model.experts_per_token * model.hidden_size * 2
    return 2 * model.num_expert_layers * all_to_all_seconds(message, num_ranks, link)
