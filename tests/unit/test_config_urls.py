"""Addresses of servers: what is one, and which two are the same."""

from __future__ import annotations

import pytest

from components.config.reading import load
from components.config.urls import check_urls, host_and_port
from components.errors import InputError
from tests.code_graph import ROOT


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://rollout-0:8000", ("rollout-0", 8000)),
        ("http://rollout_0.servers.svc:8000/", ("rollout_0.servers.svc", 8000)),
        ("http://10.0.0.7", ("10.0.0.7", 80)),
        ("https://Rollout", ("rollout", 443)),
        ("http://[::1]:8000", ("::1", 8000)),
        ("http://[0:0::0:1]:8000/", ("::1", 8000)),
    ],
)
def test_a_server_is_known_by_its_host_and_port(url, place):
    assert host_and_port(url) == place


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("rollout-0:8000", "is not the address of a server; write it as http://host:port"),
        ("ftp://rollout-0:8000", "is not the address"),
        ("http://rollout-0:port", "is not the address"),
        ("http://rollout-0:", "is not the address"),
        ("http://rollout-0:8000/v1", "is not the address"),
        ("http://rollout-0:8000?x=1", "is not the address"),
        ("http://rollout-0:8000#x", "is not the address"),
        ("http://[::1:80", "is not the address"),
        ("http://[::1]a:80", "is not the address"),
        ("http://::1:80", "is not the address"),
        ("http://rollout-0:80000", "has port 80000; ports go from 1 to 65535"),
        ("http://rollout-0:0", "has port 0"),
        ("http://:80", "'' is no part of a host name"),
        ("http://a..b:80", "'' is no part of a host name"),
        ("http://*:80", "'\\*' is no part of a host name"),
        (f"http://{'a' * 64}:80", "is no part of a host name"),
        ("http://[1.2.3.4]:80", "names no host that can be"),
    ],
)
def test_what_is_no_address_of_a_server_is_refused(url, said):
    with pytest.raises(ValueError, match=said):
        host_and_port(url)


@pytest.mark.parametrize("other", ["http://a:80/", "http://A", "https://a:80", "http://a.:80"])
def test_a_server_is_named_once(other):
    with pytest.raises(ValueError, match="are the same server"):
        check_urls(["http://a:80", "http://b:80", other])


def test_a_password_is_refused_and_not_repeated():
    override = "rollout.engine={kind: vllm, urls: ['http://user:hunter2@rollout-0:8000']}"
    with pytest.raises(InputError, match="ends in @rollout-0:8000 holds a name or a password") as caught:
        load(ROOT / "configs/demo.yaml", [override])
    assert "hunter2" not in str(caught.value)
