"""Addresses of servers, such as ``http://rollout-0:8000``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv6Address

PORTS = {"http": 80, "https": 443}
URL = re.compile(r"(?P<scheme>https?)://(\[(?P<v6>[^\[\]]*)\]|(?P<host>[^\s/:?#@\[\]]*))(:(?P<port>[0-9]{1,5}))?/?")
LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
HOW = "write it as http://host:port or https://host:port, an IPv6 address in [brackets]"


def check_urls(urls: Iterable[str]) -> None:
    """Raise ``ValueError`` unless each URL is the address of a server, and of another one than those before."""
    known: dict[tuple[str, int], str] = {}
    for url in urls:
        place = host_and_port(url)
        if place in known:
            raise ValueError(f"{known[place]} and {url} are the same server; name it once")
        known[place] = url


def host_and_port(url: str) -> tuple[str, int]:
    """The host in small letters, without the brackets of IPv6, and the port.

    Raises:
        ValueError: the URL does not name a server, or more than that; a password is not repeated.
    """
    if "@" in url:
        raise ValueError(
            f"the URL that ends in @{url.rpartition('@')[2]} holds a name or a password, which the logs of the run "
            "would show; servers belong on a network that only the run can reach, and need none"
        )
    found = URL.fullmatch(url)
    if found is None:
        raise ValueError(f"{url!r} is not the address of a server; {HOW}")
    port = int(found["port"] or PORTS[found["scheme"]])
    if not 1 <= port <= 65535:
        raise ValueError(f"{url!r} has port {port}; ports go from 1 to 65535")
    try:
        return _host(found["host"]) if found["v6"] is None else str(IPv6Address(found["v6"])), port
    except ValueError as error:
        raise ValueError(f"{url!r} names no host that can be: {error}; {HOW}") from None


def _host(name: str) -> str:
    labels = name.lower().removesuffix(".").split(".")
    odd = [label for label in labels if not LABEL.fullmatch(label)]
    if odd:
        raise ValueError(f"{odd[0]!r} is no part of a host name")
    return ".".join(labels)
