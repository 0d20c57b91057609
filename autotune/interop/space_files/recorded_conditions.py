"""When a knob of a recording exists, where some of its configurations do not have it. Pure.

No recording says why. What is found is the simplest rule that fits all its configurations, and since a replay
has no others it cannot be wrong there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from autotune.errors import InputError, Problem
from autotune.interop.conditions import Row, condition, with_conditions
from autotune.interop.space_files.exact_rules import Row as Values
from autotune.interop.space_files.exact_rules import exact_rules
from autotune.interop.space_files.space_text import knob_of
from autotune.measure.recordings.recording import Recording
from autotune.space.knobs.knob import Knob
from autotune.space.language.parser import MOST_CHARACTERS
from autotune.space.language.rule import Rule
from autotune.space.language.syntax import Comparison

MOST_CASES = 1_000
"""Of values of other knobs: a rule over more would be none that fits into a space file."""


def conditions(recording: Recording) -> Mapping[str, str]:
    """The text of ``when`` of each knob that some configurations of ``recording`` lack.

    Raises :class:`InputError` for a knob whose presence no other knob explains.
    """
    rows = [entry.configuration for entry in recording.entries]
    if all(len(row) == len(recording.knobs) for row in rows):
        return {}
    knobs = [knob_of(name, values, values[0]) for name, values in recording.knobs.items()]
    placed = with_conditions(knobs, rows, _explain)
    unknown = recording.knobs.keys() - {knob.name for knob in placed}
    if unknown:
        raise InputError([_unexplained(recording, name) for name in recording.knobs if name in unknown])
    return {knob.name: _text(knob.when) for knob in placed if knob.when is not None}


def _text(rule: Rule) -> str:
    """As people write it: a comparison without the brackets around it."""
    bare = rule.text.startswith("(") and isinstance(rule.tree, Comparison)
    return rule.text[1:-1] if bare else rule.text


def _unexplained(recording: Recording, name: str) -> Problem:
    lacking = sum(name not in entry.configuration for entry in recording.entries)
    return Problem(
        f"{recording.path}: {lacking:,} of {len(recording.entries):,} configurations lack the knob {name!r},"
        " and no value of another knob says which",
        hint="give them its value, or take them out",
    )


def _explain(name: str, placed: Sequence[Knob], rows: Sequence[Row]) -> Rule | None:
    parents = [knob for knob in placed if all(map(_is_plain, knob.cells[0].values))]
    simple = condition(name, parents, rows)
    with suppress(InputError):  # too long, or a text that no rule can hold in this form
        if simple is not None:
            return Rule.parse(simple.text)
    return _exact(name, [knob for knob in parents if knob.when is None], rows)


def _is_plain(value: object) -> bool:
    """Whether a rule can compare it."""
    return isinstance(value, (bool, int, float, str))


def _exact(name: str, parents: Sequence[Knob], rows: Sequence[Row]) -> Rule | None:
    """A rule that lists the values of several knobs, as few of them as tell inside from outside."""
    inside = [row for row in rows if name in row]
    outside = [row for row in rows if name not in row]
    kept = list(parents)
    if _meet(kept, inside, outside):
        return None
    for parent in parents:
        fewer = [knob for knob in kept if knob is not parent]
        if not _meet(fewer, inside, outside):
            kept = fewer
    cases = _projected(kept, inside)
    if len(cases) > MOST_CASES:
        return None
    try:
        rules = exact_rules({knob.name: knob.cells[0].values for knob in kept}, cases)
    except InputError:  # two values that no rule tells apart
        return None
    text = rules[0] if len(rules) == 1 else " and ".join(f"({rule})" for rule in rules)
    return Rule.parse(text) if len(text) <= MOST_CHARACTERS else None


def _meet(knobs: Sequence[Knob], some: Sequence[Row], others: Sequence[Row]) -> bool:
    return bool(_projected(knobs, some) & _projected(knobs, others))


def _projected(knobs: Sequence[Knob], rows: Sequence[Row]) -> set[Values]:
    return {tuple(row[knob.name] for knob in knobs) for row in rows}
