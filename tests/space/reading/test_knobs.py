"""Each kind of knob, as a space file has it."""

from __future__ import annotations

from autotune.space.configuration import FrozenMap
from autotune.space.knobs import (
    Assignment,
    Choice,
    Flag,
    FloatRange,
    IntegerRange,
    OrderedValues,
    Permutation,
)
from autotune.space.reading.reader import parse_spec
from tests.space.texts import HEAD


class TestKnobs:
    def knob(self, written: str, **facts: object) -> object:
        text = f"{HEAD}objective: a.py:A\nknobs:\n  a: {{{written}}}\n"
        (knob,) = parse_spec(text, **facts).space.knobs  # type: ignore[arg-type]
        return knob

    def test_a_float_bound_makes_a_range_of_floats(self) -> None:
        assert self.knob("range: [0, 1]") == IntegerRange("a", 0, 1)
        assert self.knob("range: [0, 1.0]") == FloatRange("a", 0.0, 1.0)
        assert self.knob("range: [0, 1], step: 0.25") == FloatRange("a", 0.0, 1.0, 0.25)

    def test_one_step_that_is_the_whole_range_by_its_digits(self) -> None:
        """As floats, 0.35 - 0.1 is less than 0.25: the step was said to be longer than the range."""
        assert self.knob("range: [0.1, 0.35], step: 0.25").cells[0].values == (0.1, 0.35)

    def test_steps(self) -> None:
        assert self.knob("range: [0, 32], step: 8, default: 16") == IntegerRange("a", 0, 32, 8, default=16)

    def test_flags(self) -> None:
        assert self.knob("flag: false") == Flag("a", default=False)
        assert self.knob("flag: true, default: true") == Flag("a", default=True)

    def test_ordered_texts(self) -> None:
        assert self.knob("values: [low, high], default: high") == OrderedValues(
            "a", ("low", "high"), default="high"
        )

    def test_choices_of_lists(self) -> None:
        assert self.knob("choices: [[1, 8], [2, 4]], default: [2, 4]") == Choice(
            "a", ((1, 8), (2, 4)), default=(2, 4)
        )

    def test_permutation_with_a_default(self) -> None:
        assert self.knob("permutation: [i, j], default: [j, i]") == Permutation(
            "a", ("i", "j"), default=("j", "i")
        )

    def test_assignment_to_a_list(self) -> None:
        assert self.knob("assign: [x], to: [0, 1], default: {x: 1}") == Assignment(
            "a", ("x",), (0, 1), default=FrozenMap({"x": 1})
        )

    def test_assignment_to_devices(self) -> None:
        device = {"names": ("cpu", "gpu")}
        assert self.knob("assign: [x], to: devices", device=device) == Assignment("a", ("x",), ("cpu", "gpu"))

    def test_conditions_may_mention_later_knobs(self) -> None:
        text = f"{HEAD}objective: a.py:A\nknobs:\n  a: {{values: [1, 2], when: b}}\n  b: {{flag: false}}\n"
        assert "a" not in parse_spec(text).space.default()
