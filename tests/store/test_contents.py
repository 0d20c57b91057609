"""Artefacts and environments, on a file, in memory and on a PostgreSQL server."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.store.store import Store


class TestContents:
    @pytest.mark.parametrize("content", [b"", b"x", b"abc" * 10_000, np.random.default_rng(0).bytes(5000)])
    def test_content_is_kept_once(self, store: Store, content: bytes) -> None:
        digest = store.put_artifact(content, "source")
        assert store.put_artifact(content, "source") == digest
        assert len(digest) == 64
        assert store.artifact(digest) == content

    def test_unknown_hashes(self, store: Store) -> None:
        with pytest.raises(InputError, match="no artefact"):
            store.artifact("0" * 64)

    def test_an_environment_that_did_not_arrive_is_empty(self, store: Store) -> None:
        assert store.environment("0" * 64) == store.environment("") == {}

    def test_environments_are_kept_once(self, store: Store) -> None:
        document = {"machine": {"cpu": "x", "cores": 2}, "packages": {"numpy": "2.0"}}
        store.put_environment("e", document)
        store.put_environment("e", {"another": "document"})
        assert store.environment("e") == document
