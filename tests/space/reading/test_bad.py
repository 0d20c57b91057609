"""What people do wrong in a space file, and the message that each mistake must give.

Each ``bad/NAME.yaml`` has its message in ``bad/NAME.txt``. After a deliberate change of a message, write them
anew with ``python -m tests.space.reading.test_bad`` and read the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.space.reading.reader import read_spec

BAD = Path(__file__).parent / "bad"
FILES = sorted(BAD.glob("*.yaml"))
DEVICE = {"l1_bytes": 32768, "l2_bytes": 1048576, "cores": 2}

PLACELESS = {"empty", "only-comments"}
"""Mistakes that stand nowhere in the file."""


def message(path: Path) -> str:
    """What reading ``path`` says, with the bare file name in the place of its path."""
    with pytest.raises(InputError) as error:
        read_spec(path, DEVICE)
    return str(error.value).replace(str(path), path.name)


def test_there_are_enough_of_them() -> None:
    assert len(FILES) >= 50
    assert {path.stem for path in BAD.glob("*.txt")} == {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_message(path: Path) -> None:
    assert message(path) == path.with_suffix(".txt").read_text().rstrip("\n")


@pytest.mark.parametrize("path", [p for p in FILES if p.stem not in PLACELESS], ids=lambda path: path.stem)
def test_every_problem_has_a_place_in_the_file_and_they_are_in_order(path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_spec(path, DEVICE)
    places = [problem.where for problem in error.value.problems]
    lines = path.read_text().splitlines() or [""]
    for place in places:
        assert place is not None and place.file == str(path)
        assert 1 <= place.line <= len(lines) + 1
        assert place.column >= 1
    assert places == sorted(places, key=lambda p: (p.line, p.column) if p else (0, 0))


if __name__ == "__main__":
    for file in FILES:
        file.with_suffix(".txt").write_text(message(file) + "\n")
