"""Who may reach whom: a reading of network policies as Kubernetes defines them.

A pod that some policy of a direction selects may do in that direction what the policies that select it allow together,
and nothing else; one that none selects may do everything. A connection needs both ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

Manifest = dict[str, Any]
Labels = Mapping[str, str]
NAME = "kubernetes.io/metadata.name"


@dataclass(frozen=True)
class End:
    """A pod in a namespace, or, without a namespace, an address outside."""

    labels: Labels = field(default_factory=dict)
    namespace: str | None = None
    namespace_labels: Labels = field(default_factory=dict)
    address: str = ""

    @property
    def surroundings(self) -> Labels:
        return {NAME: self.namespace or "", **self.namespace_labels}


def reaches(policies: Iterable[Manifest], source: End, target: End, port: int, protocol: str = "TCP") -> bool:
    """Whether ``source`` can open a connection to a port of ``target``."""
    policies = list(policies)
    return all(
        _allowed(policies, here, there, direction, port, protocol)
        for here, there, direction in ((source, target, "Egress"), (target, source, "Ingress"))
    )


def _allowed(policies: list[Manifest], here: End, there: End, direction: str, port: int, protocol: str) -> bool:
    if here.namespace is None:
        return True  # what is outside follows no policy of ours
    mine = [policy for policy in policies if _selects(policy, here) and direction in policy["spec"]["policyTypes"]]
    return not mine or any(
        _has_peer(rule.get("to" if direction == "Egress" else "from"), policy, there)
        and _has_port(rule, port, protocol)
        for policy, rule in _rules(mine, direction)
    )


def _rules(policies: list[Manifest], direction: str) -> Iterator[tuple[Manifest, Manifest]]:
    for policy in policies:
        for rule in policy["spec"].get(direction.lower(), []):
            yield policy, rule


def _selects(policy: Manifest, end: End) -> bool:
    return policy["metadata"]["namespace"] == end.namespace and matches(policy["spec"]["podSelector"], end.labels)


def _has_peer(peers: list[Manifest] | None, policy: Manifest, end: End) -> bool:
    return not peers or any(_is_peer(peer, policy, end) for peer in peers)


def _is_peer(peer: Manifest, policy: Manifest, end: End) -> bool:
    if "ipBlock" in peer:
        return end.namespace is None and _in_block(peer["ipBlock"], end.address)
    if end.namespace is None:
        return False
    if "namespaceSelector" in peer:
        surrounded = matches(peer["namespaceSelector"], end.surroundings)
    else:
        surrounded = end.namespace == policy["metadata"]["namespace"]
    return surrounded and matches(peer.get("podSelector", {}), end.labels)


def _in_block(block: Manifest, address: str) -> bool:
    inside = [ip_address(address) in ip_network(part) for part in (block["cidr"], *block.get("except", []))]
    return inside[0] and not any(inside[1:])


def _has_port(rule: Manifest, port: int, protocol: str) -> bool:
    ports = rule.get("ports")
    return not ports or any(
        one.get("protocol", "TCP") == protocol and one["port"] <= port <= one.get("endPort", one["port"])
        for one in ports
    )


def matches(selector: Manifest, labels: Labels) -> bool:
    """Whether a label selector holds. Only what our files use: matchLabels, and matchExpressions with In."""
    expressions = selector.get("matchExpressions", [])
    assert all(one["operator"] == "In" for one in expressions), expressions
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and all(
        labels.get(one["key"]) in one["values"] for one in expressions
    )
