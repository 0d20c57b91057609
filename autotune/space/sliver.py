"""Sampling where random draws are seldom feasible: constraints leave a sliver of the continuous knobs.

Shares that add up to at most 1 leave such a sliver: of eight shares, one random draw in 40,000 is feasible.
It is closed in on as subset simulation closes in on rare failures of structures (Au and Beck, Probabilistic
Engineering Mechanics 16, 2001). Of some hundred random draws, the half that misses the constraints by least
is kept and doubled. Each draw is then moved about among points that miss the constraints by no more than that
half. This is repeated until no draw misses them.

A move goes along a line to a point drawn uniformly from the acceptable part of the line (hit and run, with
the shrinking of Neal, Slice sampling, Annals of Statistics 31, 2003). A line runs along one knob, or in the
direction from one draw to another, so that a sliver oblique to all knobs is travelled as well (ter Braak, A
Markov chain Monte Carlo version of differential evolution, Statistics and Computing 16, 2006). The discrete
knobs are drawn anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from operator import truediv
from statistics import median

import numpy as np

from autotune.space.configuration import Value
from autotune.space.feasible_set.configurations import Configurations
from autotune.space.knobs import FloatRange
from autotune.space.knobs.items import Items
from autotune.space.language.rule import Rule
from autotune.space.language.shortfall import Amount, shortfall

Values = Mapping[str, Value]
Places = Mapping[str, float]
"""Where the continuous knobs of a configuration stand on their scales."""

MEMBERS = 128
"""Draws that close in together: their density after a halving is right to about a tenth (1 / sqrt(128))."""
HALVINGS = 400
"""The most halvings before giving up. A float has 53 bits, so a linear equality is met after some 60; that 40
shares add up to a whole, after 160."""
FEW = 8
"""The fewest draws that come nearer in a halving that is not in vain."""
IN_VAIN = 3
"""Halvings in vain, one after the other, before giving up."""
ROUNDS = 3
"""Moves of a member before the result counts as a draw of its own."""
MOST_STEPS = 16
"""The most steps of one move. With many continuous knobs they suffice, since every other step moves them
all."""
AT_ONCE = 64
"""Draws that are made side by side. Where more are asked for, each is one move away from an earlier one."""
REACHES = (0.2, 0.05, 0.01)
"""How far a neighbour may be at most, as fractions of a knob's scale. One of them is drawn for each
neighbour."""
SHRINKS = 12
"""The most points that are tried on one line. A line that soon leaves a thin sliver is not worth more."""


@dataclass(frozen=True)
class Member:
    """A configuration, and where its continuous knobs stand on their scales."""

    values: Values
    places: Places


@dataclass(frozen=True)
class Sliver:
    """Configurations that satisfy the constraints, from which others are reached."""

    moves: Moves
    members: Sequence[Member]

    def sample(self, rng: np.random.Generator, n: int) -> list[Values]:
        """``n`` draws, close to uniform, with repeats."""
        here = [self.members[place] for place in rng.integers(len(self.members), size=min(n, AT_ONCE))]
        found: list[Values] = []
        for rounds in count(1):
            here = [self.moves.travel(one, self._kin, 0.0, rng) for one in here]
            if rounds >= ROUNDS:
                found += [one.values for one in here]
            if len(found) >= n:
                break
        return found[:n]

    def near(self, values: Values, rng: np.random.Generator, n: int) -> list[Values]:
        """``n`` configurations near ``values``, each on a line through it, with repeats."""
        here = self.moves.member(values)
        reaches = rng.choice(REACHES, n).tolist()
        return [self.moves.step(here, self._kin, 0.0, rng, reach).values for reach in reaches]

    @cached_property
    def _kin(self) -> Sequence[Places]:
        return [one.places for one in self.members]


def close_in(draws: Sequence[Values], moves: Moves, rng: np.random.Generator) -> Sliver | None:
    """The sliver that random ``draws`` close in on; ``None`` where they do not reach it."""
    members = [moves.member(values) for values in draws]
    nearest, in_vain = math.inf, 0
    for _ in range(HALVINGS):
        misses = [moves.missed(one.values) for one in members]
        nearer = sorted(miss for miss in misses if miss < nearest)
        in_vain = 0 if len(nearer) >= FEW else in_vain + 1
        if in_vain == IN_VAIN:
            return None
        if not in_vain:  # half of all, or the few that are nearer: misses by a rounding come in steps
            nearest = nearer[min(len(members) // 2, len(nearer) - 1)]
        kept = [one for one, miss in zip(members, misses, strict=True) if miss <= nearest]
        kin = [one.places for one in kept]
        begun = [kept[place] for place in rng.integers(len(kept), size=len(members))]
        members = [moves.travel(one, kin, nearest, rng) for one in begun]
        if nearest == 0.0:
            return Sliver(moves, members)
    return None


def missed_by(rules: Sequence[Rule], draws: Sequence[Values]) -> Amount:
    """A function of the values: by how much they miss all ``rules``, 0 where they satisfy them.

    It is the sum of the misses of the rules, each divided by its median among the ``draws`` that miss that
    rule.
    """
    amounts = [shortfall(rule) for rule in rules]
    usual = [median([a for a in map(amount, draws) if 0 < a < math.inf] or [1.0]) for amount in amounts]

    def missed(values: Values) -> float:
        each = [amount(values) for amount in amounts]
        total = math.fsum(map(truediv, each, usual))
        # The smallest float divided by anything above 2 is 0, which would mean that nothing is missed.
        return total if total or not any(each) else math.ulp(0.0)

    return missed


@dataclass(frozen=True)
class Moves:
    """Moves from a configuration to another that misses the constraints on continuous knobs by no more."""

    space: Configurations
    missed: Amount
    """By how much values miss those constraints."""
    anew: Callable[[np.random.Generator, Values], Values]
    """Draws the knobs of the feasible set anew and keeps the others, as far as they still exist."""
    others: Sequence[Rule]
    """The constraints on discrete knobs alone."""

    def member(self, values: Values) -> Member:
        places = {k.name: k.position(values[k.name]) for k in self._continuous if k.name in values}
        return Member(values, places)

    def travel(self, here: Member, kin: Sequence[Places], level: float, rng: np.random.Generator) -> Member:
        """Several steps from ``here``, none of which misses the constraints by more than ``level``.

        ``kin`` are the places of all members: from one to another of them are directions to step in.
        """
        for _ in range(min(len(here.places), MOST_STEPS)):
            here = self.step(here, kin, level, rng)
        for draw in (self.anew, self._one_anew):
            there = draw(rng, here.values)
            if there != here.values and self.missed(there) <= level:
                here = self.member(there)
        return here

    def step(
        self,
        here: Member,
        kin: Sequence[Places],
        level: float,
        rng: np.random.Generator,
        reach: float = math.inf,
    ) -> Member:
        """One step along a line: that of one knob, or one parallel to the line through two of the ``kin``.

        No continuous knob moves by more than ``reach``, a fraction of its scale.
        """
        if rng.random() < 0.5:
            direction = _between(kin, here.places, rng)
        else:
            names = list(here.places)
            direction = {names[rng.integers(len(names))]: 1.0} if names else {}
        return self._along(direction, here, level, rng, reach)

    def _along(
        self, direction: Places, here: Member, level: float, rng: np.random.Generator, reach: float
    ) -> Member:
        """A point on the line through ``here`` with the same knobs that misses by at most ``level``.

        ``here`` itself where none is found.
        """
        line = [(name, self._knob[name].at, here.places[name], by) for name, by in direction.items() if by]
        low, high = (-math.inf, math.inf) if line else (0.0, 0.0)
        for _, _, begin, by in line:  # the innermost loops of closing in: without calls, a third faster
            back = (-begin if -begin > -reach else -reach) / by
            ahead = (1.0 - begin if 1.0 - begin < reach else reach) / by
            if back > ahead:
                back, ahead = ahead, back
            low = back if back > low else low
            high = ahead if ahead < high else high
        active = self.space.active(here.values)
        there, places = dict(here.values), dict(here.places)
        for _ in range(SHRINKS if low < high else 0):
            way = rng.uniform(low, high)
            for name, at, begin, by in line:
                place = begin + way * by
                places[name] = place = 0.0 if place < 0.0 else 1.0 if place > 1.0 else place
                there[name] = at(place)
            if self.missed(there) <= level and self.space.active(there) == active:
                return Member(there, places)
            low, high = (way, high) if way < 0 else (low, way)
        return here

    def _one_anew(self, rng: np.random.Generator, here: Values) -> Values:
        """``here`` with one discrete knob drawn anew.

        ``here`` itself where that changes which knobs exist, or breaks one of the other constraints.
        """
        rest = [knob for knob in self.space.knobs if knob.cells and knob.name in here]
        if not rest:
            return here
        knob = rest[rng.integers(len(rest))]
        if isinstance(knob, Items):
            steps = knob.stepped(np.array(knob.split(here[knob.name])), 1, rng).tolist()
            places = steps[0] if steps else list(knob.split(here[knob.name]))
        else:
            places = [int(rng.integers(len(knob.cells[0].values)))]
        there = {**here, knob.name: knob.join(places)}
        same = self.space.active(there) == self.space.active(here)
        return there if same and all(rule.holds(there) for rule in self.others) else here

    @cached_property
    def _continuous(self) -> list[FloatRange]:
        return [knob for knob in self.space.knobs if isinstance(knob, FloatRange) and not knob.cells]

    @cached_property
    def _knob(self) -> Mapping[str, FloatRange]:
        return {knob.name: knob for knob in self._continuous}


def _between(kin: Sequence[Places], here: Places, rng: np.random.Generator) -> Places:
    """From one of the ``kin`` to another, in the continuous knobs that both and ``here`` have."""
    one, other = (kin[place] for place in rng.integers(len(kin), size=2))
    return {name: place - other[name] for name, place in one.items() if name in other and name in here}
