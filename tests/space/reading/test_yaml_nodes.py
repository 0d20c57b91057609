"""YAML 1.2 as it is meant, and files made to exhaust who reads them."""

from __future__ import annotations

import pytest

from autotune.space.knobs import (
    Choice,
)
from autotune.space.reading.reader import parse_spec
from tests.space.texts import HEAD, TILE, problems


class TestYaml12:
    """What differs from YAML 1.1."""

    def choices(self, written: str) -> tuple[object, ...]:
        (knob,) = parse_spec(f"{HEAD}objective: a.py:A\nknobs: {{a: {{choices: [{written}]}}}}\n").space.knobs
        assert isinstance(knob, Choice)
        return knob.choices

    def test_scalars(self) -> None:
        assert self.choices("1e-3, no, on, true, 010, 0x1F, 0o17, 1_000, 1:30, -.5, +3") == (
            1e-3, "no", "on", True, 10, 31, 15, "1_000", "1:30", -0.5, 3,
        )  # fmt: skip

    def test_quoted_numbers_are_texts(self) -> None:
        assert self.choices("'1', \"2\", 3") == ("1", "2", 3)

    def test_dates_are_texts(self) -> None:
        assert self.choices("2024-01-01") == ("2024-01-01",)

    def test_aliases(self) -> None:
        spec = parse_spec(f"{HEAD}objective: a.py:A\nknobs:\n  a: &tile {{values: [1, 2]}}\n  b: *tile\n")
        assert [knob.cardinality for knob in spec.space.knobs] == [2, 2]

    def test_a_byte_order_mark_and_windows_lines(self) -> None:
        spec = parse_spec("\ufeff" + f"{HEAD}objective: a.py:A\n{TILE}".replace("\n", "\r\n"))
        assert spec.name == "demo"


class TestHostile:
    def test_billion_laughs(self) -> None:
        lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
        for one, next_ in zip("abcdefghi", "bcdefghij", strict=True):
            lines.append(f"{next_}: &{next_} [{', '.join([f'*{one}'] * 10)}]")
        (found,) = problems("\n".join(lines))
        assert "more than 100,000 values" in found

    @pytest.mark.parametrize("sign", ["[", "{", "- ", "? ", "a: {"])
    def test_deep_nesting(self, sign: str) -> None:
        (found,) = problems(sign * 100_000)
        assert "levels deep" in found

    def test_a_chain_of_aliases_is_as_deep_as_what_they_stand_for(self) -> None:
        lines = ["a0: &a0 0"]
        for number in range(1, 41):
            lines.append(f"a{number}: &a{number} {'[' * 29}*a{number - 1}{']' * 29}")
        (found,) = problems("\n".join(lines))
        assert found == f"space.yaml:3:{len('a2: &a2 ') + 29 + 1}: nested more than 32 levels deep"

    def test_aliases_of_what_is_shallow_are_not_deep(self) -> None:
        facts = "deep: [[[[&leaf [1]]]]], again: [*leaf, *leaf]"
        spec = parse_spec(f"{HEAD}objective: a.py:A\nworkload: {{{facts}}}\n{TILE}")
        assert spec.workload["again"] == ((1,), (1,))

    def test_an_alias_of_itself(self) -> None:
        (found,) = problems("a: &a [*a]")
        assert "the alias *a stands for nothing" in found

    def test_a_number_of_many_digits(self) -> None:
        found = problems(f"name: {'9' * 5000}")
        assert "space.yaml:1:7: a number of 5,000 characters; at most 300 are read" in found

    @pytest.mark.parametrize("field", ["knobs: {a: {range: [1.0, %s]}}", f"{TILE}search: {{seed: %s}}"])
    def test_an_integer_larger_than_any_float(self, field: str) -> None:
        found = problems(f"{HEAD}objective: a.py:A\n" + field % f"0x{'f' * 290}")
        assert any(f"0x{'f' * 55}... is too large for a float" in line for line in found)

    def test_a_long_rule(self) -> None:
        rule = " + ".join(["tile"] * 5000)
        (found,) = problems(f"{HEAD}objective: a.py:A\n{TILE}constraints: [{rule} > 2]\n")
        assert "characters" in found
