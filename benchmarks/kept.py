"""What a long benchmark has come to so far, line by line in a file, so that it goes on where it stood."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Kept:
    """Values by what they are of; both as JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self._values = {self._key(line["of"]): line["value"] for line in map(json.loads, lines)}

    def get_or_make(self, make: Callable[[], Any], **of: Any) -> Any:
        """The value of ``of``: that of an earlier run, or what ``make`` makes now."""
        key = self._key(of)
        if key not in self._values:
            line = json.dumps({"of": of, "value": make()})
            with self._path.open("a") as file:
                file.write(line + "\n")
            self._values[key] = json.loads(line)["value"]
        return self._values[key]

    @staticmethod
    def _key(of: dict[str, Any]) -> str:
        return json.dumps(of, sort_keys=True)
