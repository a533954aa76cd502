"""Which cluster is meant, and what is said where none can be reached."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from components.errors import CorrectableError
from components.launch.kubernetes.api import Cluster, Unreachable
from components.processes import free_port
from tests.kubernetes.conftest import QUICK
from tests.kubernetes.fake_api import FakeApi, Fault, kubeconfig


def connect(context: str | None = None) -> Cluster:
    return Cluster.connect("evenkeel", context, patience=QUICK)


def refused(context: str | None = None) -> CorrectableError:
    with pytest.raises(CorrectableError) as caught:
        connect(context)
    return caught.value


def test_the_current_context_is_meant_unless_another_is_named(api: FakeApi, config: Path) -> None:
    assert connect().connection.account == "context 'test'"
    assert connect("other").connection.account == "context 'other'"
    assert connect().version() == "v1.36.2"


def test_of_several_files_the_first_that_says_something_counts(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("current-context: other\n", encoding="utf-8")
    kubeconfig(second, api.url)
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}:{tmp_path / 'not-there'}")
    assert connect().connection.account == "context 'other'"


@pytest.mark.parametrize(
    ("named", "what"),
    [("", "no cluster is configured"), ("/nowhere/config", "KUBECONFIG names no file that exists: /nowhere/config")],
)
def test_where_there_is_no_kubeconfig_it_is_said_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, named: str, what: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", named)
    error = refused()
    assert what in error.what and "export KUBECONFIG=FILE" in (error.how or "")


def test_the_file_in_the_home_directory_is_found(api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "home/.kube").mkdir(parents=True)
    kubeconfig(tmp_path / "home/.kube/config", api.url)
    assert connect().connection.server == api.url


def test_the_error_for_an_unknown_context_lists_the_known_ones(config: Path) -> None:
    error = refused("production")
    assert error.what == "there is no context 'production'"
    assert error.how == "launch.kubernetes.context: one of other, test"


def test_a_file_without_a_current_context_is_reported(config: Path) -> None:
    content = yaml.safe_load(config.read_text(encoding="utf-8"))
    del content["current-context"]
    config.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert "no current context" in refused().what
    assert connect("test").version()


@pytest.mark.parametrize(
    "text", ["", "- a\n- b\n", "a: [unclosed\ntoken: geheim\n", "\x00", pytest.param("[" * 10**5, id="deep")]
)
def test_the_error_for_an_invalid_kubeconfig_shows_none_of_its_content(config: Path, text: str) -> None:
    config.write_text(text, encoding="utf-8")
    error = refused()
    assert str(error.where) == str(config)
    assert "geheim" not in str(error)


def test_the_error_for_a_broken_entry_does_not_show_its_token(api: FakeApi, config: Path) -> None:
    content = yaml.safe_load(config.read_text(encoding="utf-8"))
    content["contexts"][0]["context"]["cluster"] = "nowhere"
    content["users"][0]["user"]["token"] = "geheim"
    config.write_text(yaml.safe_dump(content), encoding="utf-8")
    error = refused()
    assert "credentials of context 'test' cannot be used" in error.what
    assert "geheim" not in str(error)


def login(command: str, *arguments: str) -> dict[str, Any]:
    """A user of a kubeconfig who logs in by a command."""
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": command, "args": list(arguments)}
    return {"exec": {**entry, "interactiveMode": "Never"}}


def script(path: Path, *lines: str) -> str:
    path.write_text("\n".join(("#!/bin/sh", *lines, "")), encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_a_log_in_command_that_fails_is_named_with_what_it_says(
    api: FakeApi, config: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = script(tmp_path / "login", "echo 'the session has expired' >&2", "exit 3")
    kubeconfig(config, api.url, login(command, "get-token"))
    error = refused()
    assert "what logs in to context 'test' gave no credentials: exec: process returned 3" in error.what
    assert error.how == f"run it by hand and do what it says: {command} get-token"
    assert "ERROR:root" not in capfd.readouterr().err
    kubeconfig(config, api.url, login("no-such-login"))
    assert refused().how == "run it by hand and do what it says: no-such-login"


def test_a_log_in_command_that_works_is_used(api: FakeApi, config: Path, tmp_path: Path) -> None:
    answer = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "good"}}'
    kubeconfig(config, api.url, login(script(tmp_path / "login", f"echo '{answer}'")))
    assert connect().version() == "v1.36.2"


def test_inside_a_pod_its_own_account_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    assert "the credentials of this pod's service account cannot be used: Service token file" in refused().what
    assert "no kubeconfig that has a context 'test'" in refused("test").what


@pytest.mark.parametrize(
    ("server", "what"),
    [
        (lambda _: f"http://127.0.0.1:{free_port()}", "no connection (connection refused)"),
        (lambda _: "http://nowhere.invalid:6443", "its name is not known"),
        (lambda url: url.replace("http://", "https://"), "no secure connection (no TLS there)"),
    ],
    ids=["not there", "unknown name", "no TLS"],
)
def test_a_server_that_cannot_be_reached_is_reported(
    api: FakeApi, config: Path, server: Callable[[str], str], what: str
) -> None:
    kubeconfig(config, server(api.url))
    error = refused()
    assert what in error.what and "kubectl cluster-info" in (error.how or "")
    assert isinstance(error, Unreachable) is ("TLS" not in what)


def test_a_server_that_does_not_answer_is_reported_after_few_attempts(api: FakeApi, config: Path) -> None:
    api.faults.add(Fault("dropped", times=100))
    assert isinstance(refused(), Unreachable)
    assert len(api.requests) == 3


def test_a_server_that_is_slow_to_start_is_waited_for(api: FakeApi, config: Path) -> None:
    api.faults.add(Fault("dropped", path="/version", times=2))
    assert connect().version() == "v1.36.2"


# TLS


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that vouches for itself, and its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    import ipaddress

    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = tmp_path / "server.pem"
    path.write_bytes(built.public_bytes(serialization.Encoding.PEM) + key.private_bytes(*plain))
    return path


@pytest.fixture
def secure(authority: Path) -> Iterator[FakeApi]:
    server = FakeApi()
    server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.context.load_cert_chain(authority)
    with server.running():
        yield server


def test_a_certificate_of_the_named_authority_is_accepted(secure: FakeApi, config: Path, authority: Path) -> None:
    kubeconfig(config, secure.url, **{"certificate-authority": str(authority)})
    assert connect().connection.server.startswith("https://")


def test_a_certificate_of_an_unknown_authority_is_reported_and_not_retried(secure: FakeApi, config: Path) -> None:
    kubeconfig(config, secure.url)
    error = refused()
    assert not isinstance(error, Unreachable)
    assert "no secure connection (self-signed certificate)" in error.what
    assert "get a new kubeconfig" in (error.how or "")


def test_a_certificate_for_another_name_is_reported(secure: FakeApi, config: Path, authority: Path) -> None:
    url = secure.url.replace("127.0.0.1", "localhost")
    kubeconfig(config, url, **{"certificate-authority": str(authority)})
    assert "no secure connection (Hostname mismatch" in refused().what
