"""Priced prompt caches: what a provider's cache finds, what it bills, and what a lost one costs."""

from lantern_lib.prompt_cache.policy import ANTHROPIC, OPENAI, PROVIDERS, Bill, CachePolicy, break_even_uses
from lantern_lib.prompt_cache.requests import Block, PromptRequest, bill_requests, breakpoints, session_requests
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
    "Block",
    "CachePolicy",
    "PromptRequest",
    "agent_session",
    "bill_requests",
    "break_even_uses",
    "breakpoints",
    "call_bills",
    "compaction_calls",
    "session_bill",
    "session_requests",
    "spread_turns",
]
