"""Parts that a plain dense decoder has not: experts, latent attention, recurrent layers, stored formats."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lantern_lib.units import require_int, require_positive

#: Components that a stored format may name.
COMPONENTS = ("embedding", "attention", "feed_forward", "experts", "shared_experts", "router", "recurrent", "head")


def expected_experts(num_experts: int, experts_per_token: int, batch_size: int) -> float:
    """Return how many experts of a layer a batch uses, on average.

    Parameters
    ----------
    num_experts, experts_per_token : int
        Experts of the layer, and how many of them each token goes to [count].
    batch_size : int
        Tokens of the step [tokens].

    Returns
    -------
    float
        Expected number of different experts [count].

    Raises
    ------
    ValueError
        If `experts_per_token` is above `num_experts`, or a number is no whole one of 1 or more.

    Notes
    -----
    ``E (1 − (1 − k/E)^B)``: an expert is missed by one token with chance 1 − k/E, and by all with its B-th power.
    Tokens choose independently and evenly; real routing is uneven and touches fewer. Page B6.

    Examples
    --------
    >>> expected_experts(256, 8, 1), round(expected_experts(256, 8, 64))
    (8.0, 222)
    """
    require_int("num_experts", num_experts)
    require_int("experts_per_token", experts_per_token)
    require_int("batch_size", batch_size)
    if experts_per_token > num_experts:
        raise ValueError(f"experts_per_token must be at most num_experts ({num_experts}), got {experts_per_token}.")
    return num_experts * (1 - (1 - experts_per_token / num_experts) ** batch_size)


@dataclass(frozen=True)
class Experts:
    """Feed-forward blocks that are chosen token by token.

    Parameters
    ----------
    num_experts, experts_per_token : int
        Routed experts of a layer, and how many a token goes to [count].
    expert_size : int
        Width of one routed expert [count].
    num_layers : int
        Layers that have experts; the others keep the dense block [count].
    shared_size : int
        Width of the experts that every token uses, together; 0 without [count].
    shared_gate : bool
        Whether a vector of the model's width weighs the shared expert.
    router_vectors : int
        Vectors of one number an expert beside the router's matrix: a bias, a balancing correction [count].
    expert_bias : bool
        Whether experts have bias vectors.

    Raises
    ------
    ValueError
        If a number is out of range, or a token would go to more experts than there are.

    Examples
    --------
    >>> Experts(8, 2, 14336, num_layers=32).experts_per_token
    2
    """

    num_experts: int
    experts_per_token: int
    expert_size: int
    num_layers: int
    shared_size: int = 0
    shared_gate: bool = False
    router_vectors: int = 0
    expert_bias: bool = False

    def __post_init__(self) -> None:
        for field in ("num_experts", "experts_per_token", "expert_size", "num_layers"):
            require_int(field, getattr(self, field))
        for field in ("shared_size", "router_vectors"):
            require_int(field, getattr(self, field), minimum=0)
        if self.experts_per_token > self.num_experts:
            raise ValueError(
                f"experts_per_token must be at most num_experts ({self.num_experts}), got {self.experts_per_token}."
                " A token can't use an expert twice."
            )


@dataclass(frozen=True)
class LatentAttention:
    """Attention that caches one compressed vector a token instead of keys and values.

    Parameters
    ----------
    kv_rank : int
        Size of the compressed vector [count].
    rope_dim, nope_dim, value_dim : int
        Sizes of a head: the part with positions, which is cached once for all heads; the part without; the value
        [count].
    query_rank : int or None
        Size of the compressed query, None where queries are projected directly [count].

    Raises
    ------
    ValueError
        If a size is no whole number of 1 or more.

    Examples
    --------
    >>> LatentAttention(512, 64, 128, 128, query_rank=1536).cached_numbers
    576
    """

    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    query_rank: int | None = None

    def __post_init__(self) -> None:
        for field in ("kv_rank", "rope_dim", "nope_dim", "value_dim"):
            require_int(field, getattr(self, field))
        if self.query_rank is not None:
            require_int("query_rank", self.query_rank)

    @property
    def cached_numbers(self) -> int:
        """Numbers that one layer caches for a token [count]."""
        return self.kv_rank + self.rope_dim


@dataclass(frozen=True)
class RecurrentLayers:
    """Layers with a state of fixed size instead of a cache that grows.

    Parameters
    ----------
    num_layers : int
        How many of the model's layers they are [count].
    matrices : tuple of (int, int)
        Inputs and outputs of each matrix of a layer [count].
    vector_parameters : int
        Other parameters of a layer: convolution, decay, norm [count].
    state_bytes : float
        State of one sequence in one layer [bytes].
    draft_state_bytes : float
        What the state grows by with each drafted token, whose inputs the convolution keeps [bytes].

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> layers = RecurrentLayers(36, ((2048, 12288), (4096, 2048)), 32960, 1_048_576.0)
    >>> sum(rows * columns for rows, columns in layers.matrices) + layers.vector_parameters
    33587392
    """

    num_layers: int
    matrices: tuple[tuple[int, int], ...]
    vector_parameters: int
    state_bytes: float
    draft_state_bytes: float = 0.0

    def __post_init__(self) -> None:
        require_int("num_layers", self.num_layers)
        require_int("vector_parameters", self.vector_parameters, minimum=0)
        require_positive("state_bytes", self.state_bytes, "A recurrent layer keeps a state for each sequence.")
        for sizes in self.matrices:
            for size in sizes:
                require_int("matrices", size)


@dataclass(frozen=True)
class FullAttention:
    """What the layers that see the whole context have instead, where windowed layers differ from them.

    Parameters
    ----------
    num_kv_heads, head_dim : int
        Key-value heads and size of a head in these layers [count].
    keys_are_values : bool
        Whether values are made from the keys' projection, which saves a matrix; both are cached.

    Raises
    ------
    ValueError
        If a number is no whole one of 1 or more.

    Examples
    --------
    >>> FullAttention(4, 512, keys_are_values=True).head_dim
    512
    """

    num_kv_heads: int
    head_dim: int
    keys_are_values: bool = False

    def __post_init__(self) -> None:
        require_int("num_kv_heads", self.num_kv_heads)
        require_int("head_dim", self.head_dim)


@dataclass(frozen=True)
class StoredFormat:
    """How a quantised checkpoint stores its matrices.

    Parameters
    ----------
    name : str
        What the file calls it.
    quantized_bytes : float
        Bytes of one quantised number [bytes].
    block : (int, int) or None
        Outputs and inputs that share one scale; 0 stands for the whole side, None for no scales [count].
    scale_bytes : float
        What a block stores besides: scale, zero point [bytes].
    quantized : collection of str
        Components that are quantised, of :data:`COMPONENTS`; the others keep the model's bytes a weight.

    Raises
    ------
    ValueError
        If a component is unknown or a size out of range.

    Examples
    --------
    >>> FP8_BLOCKS = StoredFormat("fp8", 1.0, (128, 128), 4.0)
    >>> FP8_BLOCKS.scales(7168, 576)
    280
    """

    name: str
    quantized_bytes: float
    block: tuple[int, int] | None
    scale_bytes: float = 0.0
    quantized: Collection[str] = ("attention", "feed_forward", "experts", "shared_experts", "recurrent")

    def __post_init__(self) -> None:
        require_positive("quantized_bytes", self.quantized_bytes)
        object.__setattr__(self, "quantized", tuple(self.quantized))
        unknown = set(self.quantized) - set(COMPONENTS)
        if unknown:
            raise ValueError(f"quantized must name {', '.join(COMPONENTS)}, got {', '.join(sorted(unknown))}.")
        for size in self.block or ():
            require_int("block", size, minimum=0, hint="0 means one scale for the whole side.")

    def scales(self, inputs: int, outputs: int) -> int:
        """Count the scales of one matrix.

        Parameters
        ----------
        inputs, outputs : int
            Sides of the matrix [count].

        Returns
        -------
        int
            Blocks, the incomplete ones at the edges included [count].
        """
        if self.block is None:
            return 0
        rows, columns = self.block
        return -(-outputs // (rows or outputs)) * -(-inputs // (columns or inputs))
