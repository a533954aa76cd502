"""A bucket as a `Store`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from components.config.registry import RegistrySettings
from components.registry.base import Conflict, Store, check_digest, check_key, is_key
from components.registry.s3 import trees
from components.registry.s3.bucket import Bucket
from components.registry.s3.cache import Cache
from components.registry.s3.objects import Objects
from components.registry.s3.probe import require


class S3Store(Store):
    """Nothing is written before the server has shown, once a process, that it honours conditions.

    Trees are fetched into a local cache (`RegistrySettings.cache`) and stay there.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self._bucket = Bucket(settings)
        self._objects = Objects(self._bucket)
        self._cache = Cache(self._bucket, settings.cache)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        check_key(key)
        require(self._bucket)
        try:
            self._objects.create(key, data)
        except Conflict:
            return False
        return True

    def get(self, key: str) -> tuple[bytes, str] | None:
        found = self._objects.read(check_key(key))
        return None if found is None else (found.data, found.version)

    def compare_and_swap(self, key: str, data: bytes, expected: str | None) -> str:
        check_key(key)
        require(self._bucket)
        if expected is None:
            return self._objects.create(key, data)
        found = self._objects.read(key)
        if found is None or found.version != expected:
            raise self._objects.conflict(key)
        return self._objects.replace(key, data, found)

    def keys(self, prefix: str) -> list[str]:
        return [key for key in self._objects.keys(prefix) if is_key(key)]

    def put_tree(self, directory: Path, files: Mapping[str, str] | None = None) -> str:
        found = require(self._bucket)
        return trees.put_tree(self._bucket, directory, files or {}, read_back=not found.checksums)

    def has_tree(self, digest: str) -> bool:
        return trees.has_tree(self._bucket, check_digest(digest))

    def tree(self, digest: str) -> Path:
        return self._cache.tree(check_digest(digest))
