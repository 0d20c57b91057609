"""Space files as texts, and what is wrong with one."""

from __future__ import annotations

import pytest

from autotune.errors import InputError
from autotune.space.reading.reader import parse_spec

HEAD = "autotune: 1\nname: demo\n"
TILE = "knobs:\n  tile: {values: [1, 2, 4]}\n"


def problems(text: str, **facts: object) -> list[str]:
    """What reading ``text`` says, a text a problem."""
    with pytest.raises(InputError) as error:
        parse_spec(text, "space.yaml", **facts)  # type: ignore[arg-type]
    return [str(problem) for problem in error.value.problems]
