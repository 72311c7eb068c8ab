"""Priced prompt caches: what a provider's cache finds, what it bills, and what a lost one costs."""

from lantern_lib.prompt_cache.policy import ANTHROPIC, OPENAI, PROVIDERS, Bill, CachePolicy, break_even_uses
from lantern_lib.prompt_cache.sessions import (
    agent_session,
    call_bills,
    compaction_calls,
    session_bill,
    spread_turns,
)

__all__ = [
    "ANTHROPIC",
    "OPENAI",
    "PROVIDERS",
    "Bill",
    "CachePolicy",
    "agent_session",
    "break_even_uses",
    "call_bills",
    "compaction_calls",
    "session_bill",
    "spread_turns",
]
