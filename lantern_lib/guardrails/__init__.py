"""What bounds the damage when a model is steered or a tenant misbehaves: rules, gates, quotas and scopes."""

from lantern_lib.guardrails.cache_scope import ScopedCache
from lantern_lib.guardrails.capabilities import Tool
from lantern_lib.guardrails.egress import AllowList, Rule
from lantern_lib.guardrails.quotas import TokenQuota
from lantern_lib.guardrails.tools import Argument, Gatekeeper, ToolSpec

__all__ = [
    "AllowList",
    "Argument",
    "Gatekeeper",
    "Rule",
    "ScopedCache",
    "TokenQuota",
    "Tool",
    "ToolSpec",
]
