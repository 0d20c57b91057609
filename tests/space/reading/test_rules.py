"""Where the error of a rule stands, and that one mistake is one message."""

from __future__ import annotations

import pytest

from tests.space.texts import HEAD, TILE, problems


class TestPlaces:
    """The column of a rule's error, however the rule is written."""

    @pytest.mark.parametrize(
        ("written", "place"),
        [
            ("tile * unrol <= 4", "7:12"),
            ("  tile * unrol <= 4", "7:14"),
            ("'tile * unrol <= 4'", "7:13"),
            ('"tile * unrol <= 4"', "7:13"),
            (">-\n    tile * unrol <= 4", "8:12"),
            ("|\n    tile * unrol <= 4", "8:12"),
            (">  # a note\n    tile <= 4\n    and tile * unrol <= 4\n  # another", "9:16"),
            ("|\n\n    tile <= 4\n      and unrol <= 4\n", "10:11"),
            ("tile\n    * unrol <= 4", "8:7"),
            ("'tile\n    * unrol <= 4'", "8:7"),
            ("&rule >\n    tile *\n\n    unrol <= 4", "10:5"),
            ("&rule 'tile * unrol <= 4'", "7:19"),
            ("'''a'' != ''b'' and unrol <= 4'", "7:25"),
            (r'"\"a\" != \"b\" and\n\tunrol <= 4"', "7:28"),
            ('"tile <= 4\n    and \\"a\\" != unrol"', "8:18"),
            ('"tile \\x2a unrol <= 4"', "7"),
        ],
    )
    def test_constraint(self, written: str, place: str) -> None:
        text = f"{HEAD}objective: a.py:A\n{TILE}constraints:\n  - {written}\n"
        (found,) = problems(text)
        assert found.startswith(f"space.yaml:{place}: ")

    def test_when(self) -> None:
        text = f"{HEAD}objective: a.py:A\nknobs:\n  a: {{flag: true}}\n  b: {{values: [1], when: not c}}\n"
        (found,) = problems(text)
        assert found.startswith("space.yaml:6:30: ")


class TestOneMistakeOneMessage:
    def test_a_broken_knob_is_not_missed_elsewhere(self) -> None:
        text = (
            f'{HEAD}command: [./b, "{{tile}}"]\nknobs:\n  tile: {{values: []}}\n'
            "  fast: {flag: true, when: tile > 2}\n  deep: {flag: true, when: fast}\n"
            "constraints: [tile < 4, not fast or tile > 1, deep]\n"
        )
        (found,) = problems(text)
        assert "knobs.tile.values is an empty list" in found

    def test_a_broken_fact_is_not_missed_elsewhere(self) -> None:
        text = f"{HEAD}objective: a.py:A\nworkload: {{m: }}\n{TILE}constraints: [m > tile, workload.m > 2]\n"
        (found,) = problems(text)
        assert "workload.m is empty" in found

    def test_a_broken_workload_is_not_missed_elsewhere(self) -> None:
        text = f"{HEAD}objective: a.py:A\nworkload: 960\n{TILE}constraints: [m > tile, workload.m > 2]\n"
        (found,) = problems(text)
        assert "workload is 960" in found

    def test_knobs_are_checked_where_other_sections_are_broken(self) -> None:
        found = problems(f"{HEAD}budget: 3\nobjective: a\nknobs:\n  tile: {{values: [1, 1]}}\n")
        assert len(found) == 3

    def test_a_cycle_is_found_beside_a_broken_knob(self) -> None:
        found = problems(
            f"{HEAD}objective: a.py:A\nknobs:\n  x: {{values: []}}\n"
            "  a: {flag: true, when: b}\n  b: {flag: true, when: a}\n"
        )
        assert len(found) == 2
