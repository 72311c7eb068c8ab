"""The allow-list against addresses that have fooled other gates; expected answers are written by hand."""

from __future__ import annotations

import pytest

from lantern_lib.guardrails.egress import AllowList, Rule, is_public_address
from lantern_lib.guardrails.links import links, refused_links

GATE = AllowList(
    (
        Rule("docs.lantern.example"),
        Rule("cdn.lantern.example", subdomains=True, ports=(443, 8443)),
        Rule("xn--bcher-kva.example"),
        Rule("old.lantern.example", schemes=("http",), ports=(80,)),
    )
)


@pytest.mark.parametrize(
    "url",
    [
        "https://docs.lantern.example",
        "https://docs.lantern.example/a/b?c=d#e",
        "HTTPS://Docs.Lantern.Example:443/",
        "https://cdn.lantern.example:8443/x",
        "https://eu.img.cdn.lantern.example/x.png",
        "https://xn--bcher-kva.example/",
        "http://old.lantern.example/",
        "https://docs.lantern.example/a@b:c",
    ],
)
def test_what_the_rules_name_is_allowed(url: str) -> None:
    assert GATE.check(url).allowed


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://collect.example/", "no rule"),
        ("https://lantern.example/", "no rule"),
        ("https://docs.lantern.example.collect.example/", "no rule"),
        ("https://evildocs.lantern.example/", "no rule"),
        ("https://evilcdn.lantern.example/", "no rule"),
        ("https://a.docs.lantern.example/", "no rule"),
        ("https://docs.lantern.example:8443/", "no rule"),
        ("http://docs.lantern.example/", "no rule"),
        ("https://old.lantern.example/", "no rule"),
        ("http://old.lantern.example:443/", "no rule"),
        ("https://docs-lantern.example/", "no rule"),
        ("https://docs.lantern.example@collect.example/", "a name or password"),
        ("https://user:word@docs.lantern.example/", "a name or password"),
        ("https://@docs.lantern.example/", "a name or password"),
        ("https://collect.example\\@docs.lantern.example/", "characters"),
        ("https://docs.lantern.example\\.collect.example/", "characters"),
        ("https://docs.lantern.example /", "characters"),
        (" https://docs.lantern.example/", "characters"),
        ("https://docs.lantern\t.example/", "characters"),
        ("https://docs.lantern.example/\r\nHost: x", "characters"),
        ("\x00https://docs.lantern.example/", "characters"),
        ("https://docs。lantern.example/", "characters"),
        ("https://ｄocs.lantern.example/", "characters"),
        ("https://bücher.example/", "characters"),
        ("https://dоcs.lantern.example/", "characters"),  # a Cyrillic letter
        ("https://docs.lantern.example\u200b/", "characters"),
        ("https://xn--bcher-kvb.example/", "no rule"),
        ("https://docs.lantern.example./", "not a plain host"),
        ("https://docs..lantern.example/", "not a plain host"),
        ("https://docs%2elantern.example/", "not a plain host"),
        ("https://-docs.lantern.example/", "not a plain host"),
        ("https://localhost/", "not a plain host"),
        ("https://*.lantern.example/", "not a plain host"),
        ("https://127.0.0.1/", "a number"),
        ("https://2130706433/", "a number"),
        ("https://0x7f.1/", "a number"),
        ("https://0177.0.0.1/", "a number"),
        ("https://169.254.169.254./latest", "a number"),
        ("https://[::1]/", "a number"),
        ("https://[::ffff:127.0.0.1]:443/", "a number"),
        ("https:///docs.lantern.example/", "no host"),
        ("https:docs.lantern.example/", "no host"),
        ("https://:443/", "no host"),
        ("//docs.lantern.example/x", "no scheme"),
        ("docs.lantern.example/x", "no scheme"),
        ("/x.png", "no scheme"),
        ("data:image/png;base64,AAAA", "the scheme 'data'"),
        ("javascript:fetch('x')", "the scheme 'javascript'"),
        ("file:///etc/passwd", "the scheme 'file'"),
        ("ftp://docs.lantern.example/", "the scheme 'ftp'"),
        ("mailto:a@docs.lantern.example", "the scheme 'mailto'"),
        ("https://docs.lantern.example:99999/", "not a well-formed"),
        ("https://docs.lantern.example:x/", "not a well-formed"),
        ("https://[::1/", "not a well-formed"),
        ("", "no address"),
        ("https://docs.lantern.example/" + "a" * 3000, "longer than"),
    ],
)
def test_everything_else_is_refused_and_says_why(url: str, reason: str) -> None:
    decision = GATE.check(url)
    assert not decision.allowed
    assert decision.reason.startswith(reason)


def test_an_empty_list_allows_nothing() -> None:
    assert not AllowList().check("https://docs.lantern.example/").allowed


def test_every_hop_of_a_redirect_has_to_be_allowed() -> None:
    start = "https://docs.lantern.example/a"
    assert GATE.check_redirects([start, "/b", "https://cdn.lantern.example/c"]).allowed
    assert GATE.check_redirects([start, "https://collect.example/", start]).url == "https://collect.example/"
    assert not GATE.check_redirects([start, "//collect.example/b"]).allowed
    assert not GATE.check_redirects([start, "http://docs.lantern.example/"]).allowed
    assert not GATE.check_redirects([start, "/\t/collect.example/"]).allowed
    assert not GATE.check_redirects(["https://collect.example/", start]).allowed
    assert GATE.check_redirects([start] + ["/b"] * 6).reason == "more than 5 redirects"
    with pytest.raises(ValueError, match="^locations"):
        GATE.check_redirects([])


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True),
        ("2606:4700::1111", True),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.0.1", False),
        ("127.0.0.1", False),
        ("0.0.0.0", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("fe80::1", False),
        ("fc00::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.215.14", True),
        ("2002:7f00:1::", False),
        ("64:ff9b::7f00:1", False),
        ("ff02::1", False),
    ],
)
def test_inner_addresses_are_not_public_in_any_form(address: str, public: bool) -> None:
    assert is_public_address(address) is public


def test_a_rule_takes_only_plain_names() -> None:
    for host in (
        "",
        "lantern",
        "*.lantern.example",
        "https://a.example",
        "A.example",
        "10.0.0.1",
        "a.example.",
        "bü.example",
    ):
        with pytest.raises(ValueError, match="^host must be"):
            Rule(host)
    with pytest.raises(ValueError, match="^schemes"):
        Rule("a.example", schemes=("file",))
    with pytest.raises(ValueError, match="^ports"):
        Rule("a.example", ports=(70_000,))
    with pytest.raises(ValueError, match="^address must be"):
        is_public_address("docs.lantern.example")


BAD = "https://collect.example/p?d=1"


@pytest.mark.parametrize(
    "text",
    [
        f"![a]({BAD})",
        f"![a]( <{BAD}> )",
        f'[a]({BAD} "title")',
        f"![a][b]\n\n[b]: {BAD}",
        f"<{BAD}>",
        f"see {BAD}.",
        f"<img src='{BAD}'>",
        f'<IMG SRC="{BAD}"/>',
        f"<img src={BAD}>",
        f'<img srcset="{BAD} 2x">',
        f'<a href="{BAD}" ping="{BAD}">x</a>',
        f'<form action="{BAD}">',
        f'<div style="background:url({BAD})">',
        f'<style>@import "{BAD}"; </style>',
        f'<meta http-equiv="refresh" content="0; URL={BAD}">',
        f'<object data="{BAD}">',
        f"<iframe srcdoc=\"<img src='{BAD}'>\">",
        '<img src="https&#58;//collect.example/p?d=1">',
        "![a](https&#58;//collect.example/p?d=1)",
    ],
)
def test_an_address_is_found_wherever_it_hides(text: str) -> None:
    assert BAD in links(text)
    assert [found.url for found in refused_links(text, GATE)] == [BAD]


def test_allowed_links_and_plain_text_pass() -> None:
    assert refused_links("A [page](https://docs.lantern.example/a2), 3 < 4, f(x).", GATE) == []
    assert links("[up](#top) and nothing else") == []
    assert refused_links("![x](data:image/png;base64,AA)", GATE)[0].reason == "the scheme 'data' is never allowed"
    assert refused_links("[x](javascript:alert(1))", GATE)[0].url == "javascript:alert(1)"
