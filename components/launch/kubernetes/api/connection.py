"""One HTTP exchange with an API server, over the official client's `DynamicClient.request`.

What stands above that in `DynamicClient` is left out: its discovery asks for every API group at each start and trusts a
file of a known name in the folder for temporary files; its watch has no limit for silence, and passes over a line that
was cut off. Nothing else in this project imports `kubernetes`, and this file is loaded only when there is a cluster to
talk to.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import urllib3
from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient

from components.errors import InputError
from components.launch.kubernetes.api.errors import Failure, refusal
from components.launch.kubernetes.api.kubeconfig import NONE, Place, find

Query = Sequence[tuple[str, str]]
CONNECT = 5.0
"""Seconds until a connection stands, or is taken to be refused."""
PIECE = 2**16
"""Bytes that are read at once, at most."""
NEVER_SENT = (
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.ProxyError,
)


class Connection:
    """To the cluster of a context. ``server`` is its address, ``account`` the user name there, for messages."""

    def __init__(self, context: str | None) -> None:
        self._context = context
        self.renew()

    def renew(self) -> None:
        """Read the credentials again.

        Raises:
            InputError: there are none.
        """
        place = find(self._context)
        client = ApiClient(_configuration(place))
        client.user_agent = "evenkeel"
        self._client = DynamicClient(client, discoverer=lambda *_: None)
        self.server, self.account = str(client.configuration.host), place.account

    def exchange(
        self, method: str, path: str, query: Query, body: dict[str, Any] | None, timeout: float
    ) -> dict[str, Any]:
        """The object that one request is answered with.

        Raises:
            Failure: it is not there, and whole, within ``timeout`` seconds, or it is no success.
        """
        answer = b"".join(self._pieces(method, path, query, body, timeout, whole=True))
        try:
            found = json.loads(answer)
        except ValueError as error:
            raise Failure("what it answers is no JSON; is it a Kubernetes API server?") from error
        if not isinstance(found, dict):
            raise Failure("what it answers is no object of Kubernetes")
        return found

    def lines(self, path: str, query: Query, idle: float) -> Iterator[str]:
        """The lines of an answer as they come; ``idle`` seconds without a byte and the connection counts as lost.

        Raises:
            Failure: it is no success, or broke off.
        """
        rest = b""
        for piece in self._pieces("GET", path, query, None, idle, whole=False):
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines)
        if rest:
            yield rest.decode("utf-8", "replace")

    def _pieces(
        self, method: str, path: str, query: Query, body: dict[str, Any] | None, timeout: float, *, whole: bool
    ) -> Iterator[bytes]:
        """An answer as it comes. Where the server does not accept our credentials, they are read again and the
        request is repeated once.

        Args:
            timeout: seconds between two pieces; for all of them if they are to be a ``whole``.
        """
        options = {"serialize": False, "_request_timeout": (min(CONNECT, timeout), timeout)}
        end = time.monotonic() + timeout
        with _failures():
            try:
                response = self._client.request(method, path, body, query_params=list(query), **options)
            except ApiException as error:
                if error.status != 401:
                    raise
                self.renew()  # a token that has expired may have been renewed where it came from
                response = self._client.request(method, path, body, query_params=list(query), **options)
            try:
                while piece := response.read1(PIECE):
                    yield piece
                    if whole and time.monotonic() > end:
                        raise Failure(f"no whole answer within {timeout:g} s")
            finally:
                response.close()  # whoever stops listening ends the connection


def _configuration(place: Place) -> Configuration:
    """The client's own idea of ``place``, without its retries: it does not know what is safe to repeat."""
    found = Configuration()
    found.retries = False
    found.keep_alive = True  # what is between us and the server may forget a connection that is silent
    try:
        with _complaints() as said:
            if place.files:
                config.load_kube_config(place.files, context=place.context, client_configuration=found)
            else:
                config.load_incluster_config(client_configuration=found)
    except config.ConfigException as error:
        # Its text can end with the whole entry, and that holds a token.
        what = re.split(r" in [^ ]*/", str(error))[0][:200]
        raise InputError(
            f"the credentials of {place.account} cannot be used: {what}", where=place.files or None, how=NONE
        ) from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        what = f"the credentials of {place.account} cannot be used ({type(error).__name__})"
        raise InputError(what, where=place.files or None, how="kubectl config view --minify shows them") from None
    if place.command and not (found.api_key or found.cert_file):
        why = f": {said[-1]}" if said else ""
        how = f"run it by hand and do what it says: {place.command}"
        raise InputError(f"what logs in to {place.account} gave no credentials{why}", where=place.files, how=how)
    return found


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """First lines of what is logged meanwhile: the client says there, and only there, why a log-in failed."""
    said: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: said.append(record.getMessage().strip().partition("\n")[0][:300])  # type: ignore[method-assign]
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield said
    finally:
        root.removeHandler(handler)


@contextmanager
def _failures() -> Iterator[None]:
    """Failures of the network as ours."""
    try:
        yield
    except ApiException as error:
        if error.status:
            raise refusal(error.status, error.body or "", error.headers) from None
        raise _tls(str(error.reason)) from None  # how the client passes on what TLS says
    except urllib3.exceptions.SSLError as error:
        raise _tls(str(error)) from None
    except NEVER_SENT as error:
        raise Failure(f"no connection ({_reason(error)})", sent=False) from None
    except urllib3.exceptions.TimeoutError:
        raise Failure("no answer in time") from None
    except urllib3.exceptions.LocationValueError:
        raise Failure("its address in the kubeconfig is none", sent=False, permanent=True) from None
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Failure(f"the connection broke off ({type(error).__name__})") from None


def _reason(error: Exception) -> str:
    """What the operating system says of it."""
    text = str(error)
    if not isinstance(error, urllib3.exceptions.NewConnectionError | urllib3.exceptions.ProxyError):
        return "not in time"
    if "resolve" in text:
        return "its name is not known"
    for part in ("Connection refused", "No route to host", "Network is unreachable"):
        if part in text:
            return part.lower()
    return type(error).__name__


def _tls(text: str) -> Failure:
    found = re.search(r"certificate verify failed: ([^(]+)|alert ([a-z ]+)|Hostname|hostname|(EOF)", text)
    why = (
        next((part.strip(" .") for part in found.groups() if part), "the name does not fit")
        if found
        else "no TLS there"
    )
    # A server that is being started or stopped may end a connection in the middle of its beginning.
    return Failure(f"no secure connection ({why})", sent=False, permanent=why != "EOF")
