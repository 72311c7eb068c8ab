"""Cost models of large language model serving: the library under the Lantern course."""

from lantern_lib.hardware import A100, ACCELERATORS, H100, H200, TRAINIUM2, Accelerator, Link, Replica
from lantern_lib.hf_config import from_hf_config
from lantern_lib.model_config import LANTERN_70B, ModelConfig

__all__ = [
    "A100",
    "ACCELERATORS",
    "H100",
    "H200",
    "LANTERN_70B",
    "TRAINIUM2",
    "Accelerator",
    "Link",
    "ModelConfig",
    "Replica",
    "from_hf_config",
]
