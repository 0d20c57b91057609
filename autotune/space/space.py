"""A space: the knobs, the constraints between them, and what can be done with configurations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from autotune.errors import InputError, Problem
from autotune.space.configuration import Configuration, Value, plain
from autotune.space.feasible_set.configurations import Configurations
from autotune.space.knobs.knob import Knob
from autotune.space.language.rule import NOTHING, Rule
from autotune.space.steps import neighbours

if TYPE_CHECKING:
    from autotune.space.feasible_set.feasible import FeasibleSet
    from autotune.space.sliver import Sliver

DRAWS = 2_000
"""The most random draws that estimate how much of the continuous knobs their constraints leave."""
ENOUGH = 20
"""Where at least this many of them satisfy the constraints, rejection sampling is fast enough."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Space(Configurations):
    """What may be chosen. Immutable; two spaces are equal where their :attr:`hash` is.

    ::

        Space(
            [OrderedValues("tile", (1, 2, 4)), Choice("layout", ("row", "column"))],
            constraints=["tile * 2 <= 8"],
        )

    ``constraints`` and each knob's ``when`` may be texts; their names are knobs, facts of
    ``workload`` and facts of ``device``. ``rows``, where given, are the only configurations that
    exist (a recorded space). Raises :class:`InputError` with everything that is wrong.
    """

    def limited_to(self, rows: Iterable[Mapping[str, Value]]) -> Space:
        """The same space in which only ``rows`` exist."""
        return Space(self.knobs, self.constraints, self.workload, self.device, rows)

    # -- the feasible set

    @cached_property
    def feasible(self) -> FeasibleSet:
        """The feasible combinations of the discrete knobs.

        Continuous knobs, and knobs whose ``when`` depends on a continuous one, are not in it.
        """
        from autotune.space.feasible_set.feasible import FeasibleSet  # heavy, and not needed to read a space

        apart, rules = set(self._riding), set(self._riding_rules)
        return FeasibleSet(
            tuple(knob for knob in self.knobs if knob not in apart),
            tuple(rule for rule in self.constraints if rule not in rules),
            rows=self.rows,
        )

    @cached_property
    def _riding_rules(self) -> tuple[Rule, ...]:
        """The constraints that mention a knob outside the feasible set."""
        names = {knob.name for knob in self._riding}
        return tuple(rule for rule in self.constraints if rule.knobs & names)

    def sample(self, rng: np.random.Generator, n: int = 1) -> list[Configuration]:
        """``n`` configurations, uniform over the feasible set, with repeats.

        Continuous knobs are uniform on their scale. Where constraints leave less than a hundredth of them,
        they are close to uniform (:mod:`autotune.space.sliver`). Raises :class:`InputError` where no
        configuration is feasible, or none is found.
        """
        if not self._riding:
            return [self._ordered(values) for values in self.feasible.sample(rng, n)]
        if self._sliver is not None:
            return [self._ordered(values) for values in self._sliver.sample(rng, n)]
        found: list[Configuration] = []
        while len(found) < n:
            batch = max(n - len(found), 64) if found else n
            candidates = (self._ridden(values, rng) for values in self._discrete(rng, batch))
            found.extend(self._ordered(c) for c in candidates if all(r.holds(c) for r in self._riding_rules))
        return found[:n]

    def beside(self, here: Configuration, rng: np.random.Generator, n: int) -> list[Configuration]:
        """``n`` configurations near ``here``; none unless constraints leave a sliver of the continuous knobs.

        In a sliver a step of one knob, or of some knobs at random, is seldom feasible.
        """
        found = [] if self._sliver is None else self._sliver.near(here, rng, n)
        return [self._ordered(values) for values in found]

    @cached_property
    def _sliver(self) -> Sliver | None:
        """What constraints leave of the continuous knobs; ``None`` where random draws often meet it."""
        if not self._riding_rules:
            return None
        rng = np.random.default_rng(0)
        drawn: list[dict[str, Value]] = []
        while len(drawn) < DRAWS:
            drawn += [self._ridden(values, rng) for values in self._discrete(rng, 4 * ENOUGH)]
            if sum(all(r.holds(one) for r in self._riding_rules) for one in drawn) >= ENOUGH:
                return None
        return self._closed_in(drawn, rng)

    def _closed_in(self, drawn: Sequence[dict[str, Value]], rng: np.random.Generator) -> Sliver:
        from autotune.space.feasible_set.never import never_holds
        from autotune.space.sliver import MEMBERS, Moves, close_in, missed_by  # few spaces need it

        if never := [rule for rule in self._riding_rules if never_holds(rule, self._by_name)]:
            raise InputError([_never(rule) for rule in never])

        def anew(rng: np.random.Generator, values: Mapping[str, Value]) -> dict[str, Value]:
            return self._ridden(self._discrete(rng, 1)[0], rng, values)

        others = [rule for rule in self.constraints if rule not in self._riding_rules]
        moves = Moves(self, missed_by(self._riding_rules, drawn), anew, others)
        nearest = sorted(drawn, key=moves.missed)[:MEMBERS]
        found = close_in(nearest, moves, rng)
        if found is None:
            raise InputError(self._too_rare(len(drawn)))
        return found

    def refused(self, rng: np.random.Generator, n: int) -> dict[Rule, float]:
        """The share of ``n`` random draws that each constraint on a continuous knob refuses by itself.

        They are drawn as for :meth:`sample`. Raises :class:`InputError` where no combination of the discrete
        knobs is feasible.
        """
        if not self._riding_rules:
            return {}
        drawn = [self._ridden(values, rng) for values in self._discrete(rng, n)]
        return {rule: sum(not rule.holds(one) for one in drawn) / n for rule in self._riding_rules}

    def draws(self, rng: np.random.Generator, n: int) -> Iterator[Configuration]:
        """As :meth:`sample`, but each is built when it is asked for: for callers that may not need all."""
        if self._riding:
            yield from self.sample(rng, n)
            return
        matrix = self.feasible.sample_matrix(rng, n)
        for row in range(n):
            [values] = self.feasible.configurations(matrix[row : row + 1])
            yield self._ordered(values)

    def _discrete(self, rng: np.random.Generator, n: int) -> Sequence[dict[str, Value]]:
        everything_rides = len(self._riding) == len(self.knobs)
        return [{} for _ in range(n)] if everything_rides else self.feasible.sample(rng, n)

    def _ridden(
        self, values: Mapping[str, Value], rng: np.random.Generator, kept: Mapping[str, Value] = NOTHING
    ) -> dict[str, Value]:
        """``values`` and the knobs outside the feasible set: from ``kept`` where it has them, else drawn."""
        drawn = dict(values)
        for knob in self._riding:
            if knob.when is None or knob.when.holds(drawn):
                drawn[knob.name] = kept[knob.name] if knob.name in kept else knob.sample(rng)
        return drawn

    def _too_rare(self, draws: int) -> Problem:
        rules = ", ".join(repr(rule.text) for rule in self._riding_rules)
        return Problem(
            f"no configuration was found that satisfies {rules}: hardly any of {draws:,} random ones"
            " does, and none was found by moving on from the nearest of them",
            expected="constraints that leave continuous knobs some room",
            hint="narrow the ranges, or give the knobs a step so that they are counted exactly",
        )

    def neighbours(self, configuration: Mapping[str, Value]) -> list[Configuration]:
        """The feasible configurations one step of one knob away: see :mod:`autotune.space.steps`."""
        return neighbours(self, self._ordered(configuration))

    # -- geometry

    def distance(self, one: Mapping[str, Value], other: Mapping[str, Value]) -> float:
        """The mean distance over all knobs, from 0 to 1; a knob that only one of them has counts 1."""
        return sum(_distance(knob, one, other) for knob in self.knobs) / len(self.knobs)

    def distances_to(self, one: Mapping[str, Value]) -> Callable[[Mapping[str, Value]], float]:
        """:meth:`distance` to ``one``, for many others: what is known of a value is not worked out again."""
        known: dict[tuple[int, type, object], float] = {}

        def of(place: int, knob: Knob, other: Mapping[str, Value]) -> float:
            value = other.get(knob.name)
            if not isinstance(value, bool | int | str):  # floats seldom come again, and others have no hash
                return _distance(knob, one, other)
            key = place, type(value), value
            if (found := known.get(key)) is None:
                found = known[key] = _distance(knob, one, other)
            return found

        return lambda other: sum(of(n, k, other) for n, k in enumerate(self.knobs)) / len(self.knobs)

    # -- identity

    @cached_property
    def hash(self) -> str:
        """16 hexadecimal digits that stand for the knobs, the constraints and the recorded rows.

        The order of knobs and constraints and how a rule was written do not matter; a fact of the
        workload or the device does where a rule mentions it.
        """
        identity: dict[str, object] = {
            "knobs": {
                knob.name: {**knob.to_document(), "when": knob.when.canonical if knob.when else None}
                for knob in self.knobs
            },
            "constraints": sorted({rule.canonical for rule in self.constraints}),
        }
        if self.rows is not None:
            identity["rows"] = sorted(self._row_hashes)
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        recorded = "" if self.rows is None else f", {len(self.rows)} rows"
        return f"Space({len(self.knobs)} knobs, {len(self.constraints)} constraints{recorded})"

    @property
    def _rules(self) -> tuple[Rule, ...]:
        return (*self.constraints, *(knob.when for knob in self.knobs if knob.when is not None))

    @property
    def ruled(self) -> frozenset[str]:
        """The facts of the workload that the rules use."""
        used = (name.split(".") for rule in self._rules for name in rule.facts)
        return frozenset(path[0] for root, *path in used if root == "workload")

    def to_document(self) -> dict[str, object]:
        """The space as plain JSON, in the words of a space file; rows are only counted.

        ``facts`` holds what the rules took from the workload and the device.
        """
        document: dict[str, object] = {
            "knobs": {knob.name: knob.to_document() for knob in self.knobs},
            "constraints": [rule.text for rule in self.constraints],
            "workload": plain(self.workload),
            "facts": {name: plain(value) for rule in self._rules for name, value in rule.facts.items()},
        }
        return document if self.rows is None else document | {"rows": len(self.rows)}


def _never(rule: Rule) -> Problem:
    names = ", ".join(sorted(rule.knobs))
    return Problem(
        f"no configuration satisfies {rule.text!r}: it is false for all values of {names}",
        rule.where,
        hint="change the rule, or the ranges",
    )


def _distance(knob: Knob, one: Mapping[str, Value], other: Mapping[str, Value]) -> float:
    if knob.name in one and knob.name in other:
        return knob.distance(one[knob.name], other[knob.name])
    return float((knob.name in one) != (knob.name in other))
