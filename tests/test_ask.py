"""Ask Lantern: thirty questions, each with an anchor, an answer that is computed, and the thread it comes from."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parent.parent / "book" / "ask.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"^\(ask-([a-z0-9-]+)\)=\n### (.+?)\n\n(.+?)(?=\n```|\n\(ask|\n## |\n:::)", PAGE, re.S | re.M)


def test_there_are_thirty_questions_with_an_anchor_each() -> None:
    assert len(QUESTIONS) == 30
    assert PAGE.count("\n### ") == 30
    assert len({anchor for anchor, _, _ in QUESTIONS}) == 30
    assert all(question.endswith("?") for _, question, _ in QUESTIONS)


def test_an_answer_begins_in_bold_is_short_and_has_a_claim() -> None:
    for anchor, _, answer in QUESTIONS:
        assert answer.startswith("**"), anchor
        assert "{claim}`" in answer, anchor
        assert len(re.sub(r"\{(claim|fact)\}`([^<]+)<[^>]+>`", r"\2", answer).split()) <= 110, anchor


def test_wrong_answers_are_named_as_such_and_most_answers_link_their_thread() -> None:
    assert len([anchor for anchor, _, answer in QUESTIONS if "*Wrong in the" in answer]) == 5
    threads = [anchor for anchor, _, answer in QUESTIONS if "[The thread](https://github.com/" in answer]
    assert len(threads) >= 26


def test_most_answers_lead_to_a_page_that_derives_them() -> None:
    assert len([anchor for anchor, _, answer in QUESTIONS if re.search(r"\]\([a-g]/\w+\.md\)", answer)]) >= 20
