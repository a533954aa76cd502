"""Which cluster is meant, and what is said where none can be reached."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

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
    assert connect().requests.connection.account == "context 'test'"
    assert connect("other").requests.connection.account == "context 'other'"
    assert connect().version() == "v1.36.2"


def test_of_several_files_the_first_that_says_something_counts(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("current-context: other\n", encoding="utf-8")
    kubeconfig(second, api.url)
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}:{tmp_path / 'not-there'}")
    assert connect().requests.connection.account == "context 'other'"


def test_no_kubeconfig_at_all_says_how_to_get_one() -> None:
    error = refused()
    assert "no cluster is configured" in error.what
    assert "export KUBECONFIG=FILE" in (error.how or "")


def test_the_file_in_the_home_directory_is_found(api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "home/.kube").mkdir(parents=True)
    kubeconfig(tmp_path / "home/.kube/config", api.url)
    assert connect().requests.connection.server == api.url


def test_a_file_that_is_named_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    assert "KUBECONFIG names no file that exists: /nowhere/config" in refused().what


def test_an_unknown_context_is_told_with_those_that_there_are(config: Path) -> None:
    error = refused("production")
    assert error.what == "there is no context 'production'"
    assert error.how == "launch.kubernetes.context: one of other, test"


def test_a_file_without_a_current_context_is_told(config: Path) -> None:
    content = yaml.safe_load(config.read_text(encoding="utf-8"))
    del content["current-context"]
    config.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert "no current context" in refused().what
    assert connect("test").version()


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "a: [unclosed\ntoken: geheim\n", "\x00"])
def test_a_file_that_is_no_kubeconfig_is_told_without_a_word_of_it(config: Path, text: str) -> None:
    config.write_text(text, encoding="utf-8")
    error = refused()
    assert str(error.where) == str(config)
    assert "geheim" not in str(error)


def test_a_broken_entry_is_told_without_its_token(api: FakeApi, config: Path) -> None:
    content = yaml.safe_load(config.read_text(encoding="utf-8"))
    content["contexts"][0]["context"]["cluster"] = "nowhere"
    content["users"][0]["user"]["token"] = "geheim"
    config.write_text(yaml.safe_dump(content), encoding="utf-8")
    error = refused()
    assert "credentials of context 'test' cannot be used" in error.what
    assert "geheim" not in str(error)


def test_a_log_in_command_that_fails_is_named_with_what_it_says(
    api: FakeApi, config: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = tmp_path / "login"
    command.write_text("#!/bin/sh\necho 'the session has expired' >&2\nexit 3\n", encoding="utf-8")
    command.chmod(0o755)
    login = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(command), "args": ["get-token"]}
    kubeconfig(config, api.url, {"exec": {**login, "interactiveMode": "Never"}})
    error = refused()
    assert "what logs in to context 'test' gave no credentials: exec: process returned 3" in error.what
    assert error.how == f"run it by hand and do what it says: {command} get-token"
    assert "ERROR:root" not in capfd.readouterr().err


def test_a_log_in_command_that_is_not_installed_is_named(api: FakeApi, config: Path) -> None:
    login = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-login", "interactiveMode": "Never"}
    kubeconfig(config, api.url, {"exec": login})
    assert refused().how == "run it by hand and do what it says: no-such-login"


def test_a_log_in_command_that_works_is_used(api: FakeApi, config: Path, tmp_path: Path) -> None:
    command = tmp_path / "login"
    answer = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "good"}}'
    command.write_text(f"#!/bin/sh\necho '{answer}'\n", encoding="utf-8")
    command.chmod(0o755)
    login = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(command), "interactiveMode": "Never"}
    kubeconfig(config, api.url, {"exec": login})
    assert connect().version() == "v1.36.2"


def test_inside_a_pod_its_own_account_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    assert "the credentials of this pod's service account cannot be used: Service token file" in refused().what
    assert "no kubeconfig that has a context 'test'" in refused("test").what


def test_credentials_that_are_not_accepted_are_told_at_once(api: FakeApi, config: Path) -> None:
    kubeconfig(config, api.url, {"token": "old"})
    error = refused()
    assert "does not accept the credentials of context 'test'" in error.what
    assert "aws eks update-kubeconfig" in (error.how or "")


def test_a_server_that_is_not_there_is_told(config: Path) -> None:
    kubeconfig(config, f"http://127.0.0.1:{free_port()}")
    error = refused()
    assert isinstance(error, Unreachable)
    assert "no connection (connection refused)" in error.what
    assert "kubectl cluster-info" in (error.how or "")


def test_a_name_that_nobody_knows_is_told(config: Path) -> None:
    kubeconfig(config, "http://nowhere.invalid:6443")
    assert "its name is not known" in refused().what


def test_a_server_that_does_not_answer_is_told_after_few_attempts(api: FakeApi, config: Path) -> None:
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
    assert connect().requests.connection.server.startswith("https://")


def test_a_certificate_of_nobody_we_know_is_told_and_not_tried_again(secure: FakeApi, config: Path) -> None:
    kubeconfig(config, secure.url)
    error = refused()
    assert not isinstance(error, Unreachable)
    assert "no secure connection (self-signed certificate)" in error.what
    assert "get a new kubeconfig" in (error.how or "")


def test_a_certificate_for_another_name_is_told(secure: FakeApi, config: Path, authority: Path) -> None:
    url = secure.url.replace("127.0.0.1", "localhost")
    kubeconfig(config, url, **{"certificate-authority": str(authority)})
    assert "no secure connection (Hostname mismatch" in refused().what


def test_a_server_without_tls_is_told(api: FakeApi, config: Path) -> None:
    kubeconfig(config, api.url.replace("http://", "https://"))
    assert "no secure connection (no TLS there)" in refused().what
