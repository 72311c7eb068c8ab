"""What may leave: an allow-list of web addresses that refuses whatever it does not recognise.

Limits. The check reads an address; it does not resolve the name, so what a name points to has to be checked again
where the connection is opened (:func:`is_public_address`), and redirects hop by hop (`AllowList.check_redirects`).
An allowed host that lets anybody write, or that sends requests on, carries data out just as well, and so does a rule
with ``subdomains`` for a name under which anybody can register. DNS lookups are a channel of their own and belong to
the network's rules.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urljoin, urlsplit

from lantern_lib.units import require_int

MAX_URL_LEN = 2048
DEFAULT_PORTS = {"https": 443, "http": 80}

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
# Anything but printable ASCII, and the characters on which parsers disagree about where a host ends.
_SUSPECT = re.compile(r"[^\x21-\x7e]|[\\<>\"^`{|}]")
_NUMERIC = re.compile(r"(0x[0-9a-f]*|[0-9]+)")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True)
class Decision:
    """Whether an address may be used, and why not. ``reason`` is empty for an allowed one."""

    url: str
    allowed: bool
    reason: str = ""


def _is_name(host: str) -> bool:
    labels = host.split(".")
    return len(host) <= 253 and len(labels) > 1 and all(_LABEL.fullmatch(label) for label in labels)


def _is_numeric(host: str) -> bool:
    """Tell an IP literal in any spelling: a browser reads 2130706433, 0x7f.1 and 0177.0.0.1 as addresses too."""
    return ":" in host or _NUMERIC.fullmatch(host.rstrip(".").rsplit(".", 1)[-1]) is not None


@dataclass(frozen=True)
class Rule:
    """One allowed host. ``subdomains`` allows every name below it too; ports belong to the schemes given.

    A name with letters outside ASCII is written in its ``xn--`` form, so that two names that look the same differ.
    """

    host: str
    subdomains: bool = False
    schemes: tuple[str, ...] = ("https",)
    ports: tuple[int, ...] = (443,)

    def __post_init__(self) -> None:
        if not isinstance(self.host, str) or not _is_name(self.host) or _is_numeric(self.host):
            raise ValueError(
                f"host must be a lower-case name such as 'api.lantern.example', got {self.host!r}."
                " Write no scheme, port, path or wildcard; set subdomains for names below it."
            )
        for scheme in self.schemes:
            if scheme not in DEFAULT_PORTS:
                raise ValueError(f"schemes must be of {sorted(DEFAULT_PORTS)}, got {scheme!r}. Others reach files.")
        for port in self.ports:
            if require_int("ports", port) > 65535:
                raise ValueError(f"ports must be 1 to 65535, got {port}. 443 is that of https.")

    def matches(self, scheme: str, host: str, port: int) -> bool:
        """Tell whether an address falls under this rule.

        Parameters
        ----------
        scheme, host : str
            Lower-case parts of the address [text].
        port : int
            Its port, the scheme's own if none is written [count].

        Returns
        -------
        bool
            True for the host itself, and for names below it if the rule says so.
        """
        below = self.subdomains and host.endswith("." + self.host)
        return scheme in self.schemes and port in self.ports and (host == self.host or below)


@dataclass(frozen=True)
class AllowList:
    """The hosts that tools and rendered answers may reach. An empty list allows nothing.

    Examples
    --------
    >>> gate = AllowList((Rule("docs.lantern.example"),))
    >>> gate.check("https://docs.lantern.example/a2").allowed
    True
    >>> gate.check("https://docs.lantern.example@collect.example/a2").reason
    'a name or password before the host'
    >>> gate.check("https://docs.lantern.example.collect.example/").reason
    'no rule allows this host, scheme and port'
    """

    rules: tuple[Rule, ...] = ()

    def check(self, url: str) -> Decision:
        """Decide about one address.

        Parameters
        ----------
        url : str
            The whole address, with its scheme [text].

        Returns
        -------
        Decision
            Allowed, or refused with a reason.
        """
        reason = self._objection(url)
        return Decision(str(url), not reason, reason)

    def check_redirects(self, locations: Sequence[str], max_redirects: int = 5) -> Decision:
        """Decide about an address and everything it redirects to.

        Parameters
        ----------
        locations : sequence of str
            The first address, then each ``Location`` header in turn; these may be relative [text].
        max_redirects : int
            Most hops to follow [count].

        Returns
        -------
        Decision
            That of the first refused hop, else that of the last address.

        Raises
        ------
        ValueError
            If there is no address, or `max_redirects` is negative.
        """
        require_int("max_redirects", max_redirects, minimum=0)
        if not locations:
            raise ValueError("locations must be at least one address, got none. Give the one first asked for.")
        at = locations[0]
        decision = self.check(at)
        for hop, location in enumerate(locations[1:], start=1):
            if not decision.allowed:
                break
            if hop > max_redirects:
                return Decision(location, False, f"more than {max_redirects} redirects")
            if _SUSPECT.search(location):  # before joining, which would drop some of these characters
                return Decision(location, False, "characters that do not belong in an address")
            at = urljoin(at, location)
            decision = self.check(at)
        return decision

    def _objection(self, url: str) -> str:
        if not isinstance(url, str) or not url:
            return "no address"
        if len(url) > MAX_URL_LEN:
            return f"longer than {MAX_URL_LEN} characters"
        if _SUSPECT.search(url):
            return "characters that do not belong in an address"
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            return "not a well-formed address"
        return self._host_objection(parts, port)

    def _host_objection(self, parts: SplitResult, port: int | None) -> str:
        if parts.scheme not in DEFAULT_PORTS:
            return f"the scheme {parts.scheme!r} is never allowed" if parts.scheme else "no scheme"
        host = parts.hostname or ""
        if "@" in parts.netloc:
            return "a name or password before the host"
        if not host:
            return "no host"
        if _is_numeric(host) or "[" in parts.netloc:
            return "a number in place of a name"
        if not _is_name(host):
            return "not a plain host name"
        port = DEFAULT_PORTS[parts.scheme] if port is None else port
        if not any(rule.matches(parts.scheme, host, port) for rule in self.rules):
            return "no rule allows this host, scheme and port"
        return ""


def is_public_address(address: str) -> bool:
    """Tell whether a resolved address is one of the open internet; ask before each connection.

    Parameters
    ----------
    address : str
        An IPv4 or IPv6 address, as the resolver gave it [text].

    Returns
    -------
    bool
        False for private, loopback, link-local (where clouds keep credentials), multicast and reserved addresses,
        and for IPv6 forms that carry such an IPv4 address inside.

    Raises
    ------
    ValueError
        If it is no address.

    Notes
    -----
    A name on the allow-list can be made to point inside. Connect to the very address that was checked:
    a second lookup may give another answer.

    Examples
    --------
    >>> is_public_address("93.184.215.14"), is_public_address("169.254.169.254"), is_public_address("::ffff:10.0.0.1")
    (True, False, False)
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError as error:
        raise ValueError(
            f"address must be an IPv4 or IPv6 address, got {address!r}. Resolve the name first."
        ) from error
    inside = [found]
    if isinstance(found, ipaddress.IPv6Address):
        inside += [a for a in (found.ipv4_mapped, found.sixtofour, *(found.teredo or ())) if a is not None]
        if found in _NAT64:
            inside.append(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF))
        if found.ipv4_mapped is not None:
            inside.remove(found)
    return all(a.is_global and not a.is_multicast for a in inside)
