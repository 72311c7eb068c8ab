"""Accelerators, the links between them, and the replica they form.

Peaks are dense (no sparsity) and come with a source. Efficiency is never folded into a peak: it
is an argument of :class:`Replica`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lantern_lib.units import (
    GB,
    GIB,
    MICROSECOND,
    TB,
    TFLOPS,
    format_quantity,
    require_fraction,
    require_int,
    require_non_negative,
    require_positive,
)


@dataclass(frozen=True)
class Link:
    """A connection between accelerators.

    Parameters
    ----------
    name : str
        What it is called.
    bandwidth : float
        Bandwidth of one accelerator in one direction [bytes/s].
    latency_seconds : float
        Fixed time of one collective operation, whatever its size [seconds].
    source : str
        Where the two numbers come from.
    """

    name: str
    bandwidth: float
    latency_seconds: float
    source: str = ""

    def __post_init__(self) -> None:
        require_positive("bandwidth", self.bandwidth, "Give bytes per second in one direction.")
        require_non_negative("latency_seconds", self.latency_seconds)


@dataclass(frozen=True)
class Accelerator:
    """One GPU or other accelerator.

    Parameters
    ----------
    name : str
        Product name.
    memory_bytes : float
        Capacity of its high-bandwidth memory as the product name states it [bytes].
    memory_bandwidth : float
        Peak bandwidth of that memory [bytes/s].
    peak_flops : float
        Peak dense arithmetic at 16 bits [FLOPs/s].
    link : Link
        The link to the other accelerators of the same machine.
    peak_flops_8bit : float or None
        Peak dense arithmetic at 8 bits, None where there is none [FLOPs/s].
    source, date : str
        Where the numbers come from and when they were last looked at (YYYY-MM-DD).
    """

    name: str
    memory_bytes: float
    memory_bandwidth: float
    peak_flops: float
    link: Link
    peak_flops_8bit: float | None = None
    source: str = ""
    date: str = ""

    def __post_init__(self) -> None:
        require_positive("memory_bytes", self.memory_bytes, "Give bytes, for example 80 * GB.")
        require_positive("memory_bandwidth", self.memory_bandwidth, "Give bytes per second, for example 3.35 * TB.")
        require_positive("peak_flops", self.peak_flops, "Give dense FLOPs per second, for example 989 * TFLOPS.")
        if self.peak_flops_8bit is not None:
            require_positive("peak_flops_8bit", self.peak_flops_8bit)


@dataclass(frozen=True)
class Replica:
    """A group of equal accelerators that holds one copy of a model (tensor parallelism).

    Parameters
    ----------
    accelerator : Accelerator
        The kind of accelerator.
    tp_size : int
        How many of them share every matrix: the tensor-parallel degree [count].
    compute_efficiency : float
        Share of peak arithmetic that a step reaches, in (0, 1] [ratio].
    bandwidth_efficiency : float
        Share of peak memory bandwidth that a step reaches, in (0, 1] [ratio].

    Examples
    --------
    >>> replica = Replica(H100, tp_size=4)
    >>> replica.memory_bytes / GB
    320.0
    >>> round(replica.flops_per_second / TFLOPS)
    1978
    """

    accelerator: Accelerator
    tp_size: int = 1
    compute_efficiency: float = 0.5
    bandwidth_efficiency: float = 0.8

    def __post_init__(self) -> None:
        require_int("tp_size", self.tp_size, hint="It is the number of accelerators that share the model.")
        require_fraction("compute_efficiency", self.compute_efficiency)
        require_fraction("bandwidth_efficiency", self.bandwidth_efficiency)

    @property
    def memory_bytes(self) -> float:
        """Memory of all accelerators together [bytes]."""
        return self.tp_size * self.accelerator.memory_bytes

    @property
    def flops_per_second(self) -> float:
        """Arithmetic of all accelerators together, after efficiency [FLOPs/s]."""
        return self.tp_size * self.accelerator.peak_flops * self.compute_efficiency

    @property
    def bandwidth(self) -> float:
        """Memory bandwidth of all accelerators together, after efficiency [bytes/s]."""
        return self.tp_size * self.accelerator.memory_bandwidth * self.bandwidth_efficiency

    @property
    def summary(self) -> str:
        """One line that names the machine and its assumptions."""
        card = self.accelerator
        memory = (
            format_quantity(card.memory_bytes, "GB")
            if card.memory_bytes % GB == 0
            else (format_quantity(card.memory_bytes, "GiB", 1))
        )
        return (
            f"{self.tp_size} × {card.name} ({memory}, {card.memory_bandwidth / TB:.4g} TB/s,"
            f" {card.peak_flops / TFLOPS:.4g} teraFLOPS), {self.compute_efficiency:g} of peak arithmetic,"
            f" {self.bandwidth_efficiency:g} of peak bandwidth"
        )


NVLINK_4 = Link(
    "NVLink 4",
    450 * GB,
    8 * MICROSECOND,
    "NVIDIA's H100 page gives 900 GB/s per GPU for both directions together; 450 GB/s each way and"
    " 8 microseconds per collective are assumptions of the course",
)
NVLINK_3 = Link(
    "NVLink 3",
    300 * GB,
    8 * MICROSECOND,
    "NVIDIA's A100 datasheet gives 600 GB/s for both directions together; the latency is an assumption",
)
NEURONLINK_3 = Link(
    "NeuronLink-v3",
    640 * GB,
    8 * MICROSECOND,
    "AWS's Neuron documentation gives 1.28 TB/s per chip, read here as both directions together;"
    " the latency is an assumption",
)

H100 = Accelerator(
    "H100 SXM",
    memory_bytes=80 * GB,
    memory_bandwidth=3.35 * TB,
    peak_flops=989 * TFLOPS,
    peak_flops_8bit=1979 * TFLOPS,
    link=NVLINK_4,
    source="NVIDIA H100 product page; its 1,979 and 3,958 teraFLOPS are with sparsity, half of them are dense",
    date="2026-11-03",
)
H200 = Accelerator(
    "H200 SXM",
    memory_bytes=141 * GB,
    memory_bandwidth=4.8 * TB,
    peak_flops=989 * TFLOPS,
    peak_flops_8bit=1979 * TFLOPS,
    link=NVLINK_4,
    source="NVIDIA H200 product page, as quoted by others; arithmetic as H100",
    date="2026-11-29",
)
A100 = Accelerator(
    "A100 SXM 80 GB",
    memory_bytes=80 * GB,
    memory_bandwidth=2.039 * TB,
    peak_flops=312 * TFLOPS,
    link=NVLINK_3,
    source="NVIDIA A100 80 GB SXM datasheet, as quoted by others; no 8-bit floating-point units",
    date="2026-11-29",
)
TRAINIUM2 = Accelerator(
    "Trainium2",
    memory_bytes=96 * GB,
    memory_bandwidth=2.9 * TB,
    peak_flops=667 * TFLOPS,
    peak_flops_8bit=1299 * TFLOPS,
    link=NEURONLINK_3,
    source="AWS Neuron documentation, Trainium2 architecture; memory as the EC2 Trn2 page prints it (96 GB)",
    date="2026-11-29",
)

#: The catalogue, by the name a control or a lab parameter uses.
ACCELERATORS: dict[str, Accelerator] = {
    "H100": H100,
    "H200": H200,
    "A100": A100,
    "Trainium2": TRAINIUM2,
}

#: The card as S2's convention reads it: "80 GB" taken as 80 GiB. Only for showing that convention.
H100_80GIB = Accelerator(
    "H100 SXM (80 GiB)",
    memory_bytes=80 * GIB,
    memory_bandwidth=H100.memory_bandwidth,
    peak_flops=H100.peak_flops,
    peak_flops_8bit=H100.peak_flops_8bit,
    link=NVLINK_4,
    source="the convention of calculators that take the name's 80 GB as 80 GiB",
    date="2026-11-03",
)

PCIE_4 = Link(
    "PCIe 4.0 x16",
    32 * GB,
    20 * MICROSECOND,
    "the standard's 16 GT/s on 16 lanes, rounded, in one direction; the latency is an assumption",
)
PCIE_5 = Link(
    "PCIe 5.0 x16",
    64 * GB,
    20 * MICROSECOND,
    "the standard's 32 GT/s on 16 lanes, rounded, in one direction; the latency is an assumption",
)

GH200 = Accelerator(
    "GH200 96 GB",
    memory_bytes=96 * GB,
    memory_bandwidth=4.0 * TB,
    peak_flops=989 * TFLOPS,
    peak_flops_8bit=1979 * TFLOPS,
    link=NVLINK_4,
    source="NVIDIA GH200 data sheet, the version with HBM3, as quoted by others; arithmetic as H100",
    date="2026-11-29",
)
A6000 = Accelerator(
    "RTX A6000",
    memory_bytes=48 * GB,
    memory_bandwidth=0.768 * TB,
    peak_flops=154.8 * TFLOPS,
    link=PCIE_4,
    source="NVIDIA RTX A6000 data sheet, as quoted by others; its 309.7 teraFLOPS are with sparsity",
    date="2026-11-29",
)
RTX_4090 = Accelerator(
    "RTX 4090",
    memory_bytes=24 * GB,
    memory_bandwidth=1.008 * TB,
    peak_flops=165.2 * TFLOPS,
    peak_flops_8bit=330.3 * TFLOPS,
    link=PCIE_4,
    source="NVIDIA Ada architecture paper, as quoted by others; 16-bit products summed in 32 bits",
    date="2026-11-29",
)
RTX_PRO_6000 = Accelerator(
    "RTX PRO 6000",
    memory_bytes=96 * GB,
    memory_bandwidth=1.792 * TB,
    peak_flops=503.8 * TFLOPS,
    peak_flops_8bit=1007.6 * TFLOPS,
    link=PCIE_5,
    source="NVIDIA RTX PRO 6000 Blackwell data sheet, as quoted by others; dense",
    date="2026-11-29",
)
H100_NVL = Accelerator(
    "H100 NVL",
    memory_bytes=94 * GB,
    memory_bandwidth=3.9 * TB,
    peak_flops=835.5 * TFLOPS,
    peak_flops_8bit=1671 * TFLOPS,
    link=PCIE_5,
    source="NVIDIA H100 product page, as quoted by others; its 1,671 and 3,341 teraFLOPS are with sparsity",
    date="2026-11-30",
)
H800 = Accelerator(
    "H800 SXM",
    memory_bytes=80 * GB,
    memory_bandwidth=3.35 * TB,
    peak_flops=989 * TFLOPS,
    peak_flops_8bit=1979 * TFLOPS,
    link=Link("NVLink of the H800", 200 * GB, 8 * MICROSECOND, "half of 400 GB/s; the latency is an assumption"),
    source="the H100 with a slower link, as quoted by others",
    date="2026-11-30",
)
H20 = Accelerator(
    "H20",
    memory_bytes=96 * GB,
    memory_bandwidth=4.0 * TB,
    peak_flops=148 * TFLOPS,
    peak_flops_8bit=296 * TFLOPS,
    link=NVLINK_4,
    source="NVIDIA H20 data sheet, as quoted by others; dense",
    date="2026-11-30",
)
B200 = Accelerator(
    "B200",
    memory_bytes=180 * GB,
    memory_bandwidth=8.0 * TB,
    peak_flops=2250 * TFLOPS,
    peak_flops_8bit=4500 * TFLOPS,
    link=Link("NVLink 5", 900 * GB, 8 * MICROSECOND, "half of 1,800 GB/s; the latency is an assumption"),
    source="NVIDIA DGX B200 data sheet, one of eight, as quoted by others; dense",
    date="2026-11-30",
)
