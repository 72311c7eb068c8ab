"""How an engine is set: its costs, its batch, its memory and its rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from lantern_lib import kv_cache
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig
from lantern_lib.simulator.cost import StepModel, step_model
from lantern_lib.units import require_int, require_non_negative, require_one_of, require_positive

Prefill = Literal["separate", "chunked"]
Admission = Literal["final", "blocks"]
Preemption = Literal["recompute", "swap"]


@dataclass(frozen=True)
class EngineConfig:
    """The settings of one simulated replica.

    Parameters
    ----------
    cost : StepModel
        What a step takes.
    max_batch : int
        Most sequences that run together [sequences].
    prefill : {"separate", "chunked"}
        Whether new prompts are read whole in a step of their own, which the decodes wait for, or in pieces beside them.
    token_budget : int
        Most tokens of one step. Separate prefill keeps to it except for a single prompt that is longer [tokens].
    num_blocks : int, optional
        Blocks of cache; without it memory never ends [blocks].
    block_size : int
        Tokens of one block [tokens].
    admission : {"final", "blocks"}
        Set the final length aside on entry, or give blocks as they are needed and preempt when they run out.
    preemption : {"recompute", "swap"}
        What happens to a preempted cache: it is thrown away, or copied to the host and back.
    swap_token_seconds : float
        Copying one token's cache one way; the step that does it is longer by that [seconds/token].
    prefix_cache : bool
        Keep the named blocks of prompts and let later prompts begin with them; what was used least recently goes first.
    host_blocks : int
        Blocks of host memory for cached prompts that the pool has no room for [blocks].
    host_block_seconds : float
        Loading one of them; the step that begins with it is longer by that [seconds/block].
    prefilled : bool
        Requests come with their prompt's cache and their first token, from another machine: they only decode here.
    max_waiting : int, optional
        Turn an arrival away when so many wait already [requests].
    max_wait_seconds : float, optional
        Drop a request that has waited so long when its turn comes [seconds].

    Raises
    ------
    ValueError
        For a number out of range, or settings that do not go together.
    """

    cost: StepModel
    max_batch: int = 256
    prefill: Prefill = "separate"
    token_budget: int = 8192
    num_blocks: int | None = None
    block_size: int = 16
    admission: Admission = "final"
    preemption: Preemption = "recompute"
    swap_token_seconds: float = 0.0
    prefix_cache: bool = False
    host_blocks: int = 0
    host_block_seconds: float = 0.0
    prefilled: bool = False
    max_waiting: int | None = None
    max_wait_seconds: float | None = None

    def __post_init__(self) -> None:
        require_int("max_batch", self.max_batch)
        require_int("token_budget", self.token_budget)
        require_int("block_size", self.block_size)
        require_one_of("prefill", self.prefill, get_args(Prefill))
        require_one_of("admission", self.admission, get_args(Admission))
        require_one_of("preemption", self.preemption, get_args(Preemption))
        require_non_negative("swap_token_seconds", self.swap_token_seconds)
        require_int("host_blocks", self.host_blocks, minimum=0)
        require_non_negative("host_block_seconds", self.host_block_seconds)
        if self.num_blocks is not None:
            require_int("num_blocks", self.num_blocks, hint="Does the model fit into the machine at all?")
        if self.max_waiting is not None:
            require_int("max_waiting", self.max_waiting)
        if self.max_wait_seconds is not None:
            require_positive("max_wait_seconds", self.max_wait_seconds)
        self._check_together()

    def _check_together(self) -> None:
        least = self.max_batch * self.cost.checked_tokens
        if self.prefill == "chunked" and self.token_budget < least:
            raise ValueError(
                f"token_budget must be at least {least}, one decode step of max_batch, got {self.token_budget}."
                " Otherwise some sequence would get no token."
            )
        if self.num_blocks is None and (self.prefix_cache or self.admission == "blocks"):
            raise ValueError("num_blocks must be given for a prefix cache or admission by blocks, got None.")
        if self.admission == "blocks" and self.cost.tokens_per_round != 1:
            raise ValueError(
                "admission must be 'final' with speculation, got 'blocks'. A mean of tokens fills no whole blocks."
            )

    @property
    def capacity_tokens(self) -> int | None:
        """Tokens that the blocks hold, None where memory never ends [tokens]."""
        return None if self.num_blocks is None else self.num_blocks * self.block_size

    def blocks(self, tokens: int) -> int:
        """Blocks that a number of tokens fills [blocks]."""
        return -(-tokens // self.block_size)


def engine_for(
    model: ModelConfig,
    replica: Replica,
    *,
    overhead_seconds: float = 0.0,
    reserve: float = 0.1,
    block_size: int = 16,
    **settings: object,
) -> EngineConfig:
    """Set up an engine whose costs and memory come from a model and a machine.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine.
    overhead_seconds : float
        Launch and scheduling of each step [seconds].
    reserve : float
        Share of all memory kept free, in [0, 1) [ratio].
    block_size : int
        Tokens of one block [tokens].
    **settings
        Other fields of :class:`EngineConfig`.

    Returns
    -------
    EngineConfig
        With as many blocks as the pool holds.

    Raises
    ------
    ValueError
        If the model leaves no room for a single block, or a setting is out of range.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica
    >>> engine_for(LANTERN_70B, Replica(H100, tp_size=4), max_batch=64).num_blocks
    28017
    """
    require_int("block_size", block_size)
    budget = kv_cache.memory_budget(model, replica, reserve=reserve)
    num_blocks = int(budget.pool_bytes // (block_size * kv_cache.bytes_per_token(model)))
    if not num_blocks:
        raise ValueError(
            f"replica must have room for the weights and one block, got {budget.summary}. Use more or larger cards."
        )
    cost = step_model(model, replica, overhead_seconds=overhead_seconds)
    chosen = {"cost": cost, "num_blocks": num_blocks, "block_size": block_size, **settings}
    return EngineConfig(**chosen)  # type: ignore[arg-type]
