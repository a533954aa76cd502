"""Settings of the registry: a folder or a bucket, and no word of a password."""

import traceback
from pathlib import Path

import pytest
from pydantic import ValidationError

from components.config.reading import load
from components.config.registry import RegistrySettings
from components.errors import InputError
from tests.code_graph import ROOT


def test_without_a_word_it_is_a_folder_of_the_project():
    assert RegistrySettings() == RegistrySettings(kind="directory", path=Path("registry"))
    assert RegistrySettings().under(Path("/project")).path == Path("/project/registry")


def test_a_bucket_has_an_address_and_a_cache_in_the_project():
    settings = RegistrySettings(kind="s3", bucket="models", prefix="team/evenkeel")
    assert settings.address == "s3://models/team/evenkeel"
    assert settings.under(Path("/project")).cache == Path("/project/.state/registry")
    assert RegistrySettings(kind="s3", bucket="models").address == "s3://models"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bucket": "models"}, "bucket: for kind s3, and this is kind directory"),
        ({"endpoint_url": "http://a:9000", "prefix": "x"}, "prefix, endpoint_url: for kind s3"),
        ({"kind": "s3"}, "needs the name of its bucket"),
        ({"kind": "s3", "bucket": "Models"}, "bucket: 3 to 63"),
        ({"kind": "s3", "bucket": "models/team"}, "bucket: 3 to 63"),
        ({"kind": "s3", "bucket": "models", "prefix": "/a"}, "prefix: letters"),
        ({"kind": "s3", "bucket": "models", "prefix": "a/../b"}, "prefix: letters"),
        ({"kind": "s3", "bucket": "models", "endpoint_url": "a:9000"}, "endpoint_url: write it as"),
        ({"kind": "s3", "bucket": "models", "endpoint_url": "s3://a"}, "endpoint_url: write it as"),
        ({"kind": "s3", "bucket": "models", "transfer": {"part_size": 1000}}, "greater than or equal to 5242880"),
        ({"kind": "s3", "bucket": "models", "access_key": "x"}, "Extra inputs are not permitted"),
    ],
)
def test_what_cannot_be_is_refused(given, said):
    with pytest.raises(ValidationError, match=said):
        RegistrySettings(**given)


@pytest.mark.parametrize(
    "setting",
    [
        "endpoint_url: 'http://user:hunter2@minio:9000'",
        "endpoint_url: 'http://minio:9000/?X-Amz-Signature=hunter2'",
        "secret_access_key: hunter2",
    ],
)
def test_a_password_is_refused_and_not_repeated_not_even_in_a_traceback(setting):
    with pytest.raises(InputError) as caught:
        load(ROOT / "configs/demo.yaml", [f"registry={{kind: s3, bucket: models, {setting}}}"])
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
    assert "registry" in str(caught.value)
