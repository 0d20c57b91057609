"""Rules that nobody wrote down, as far as failures give them away.

A tile that the threads do not divide, a block of more threads than there may be: such configurations fail to
compile, crash or give a wrong answer, mostly for a reason that can be written as a constraint of a few knobs.
To a process over the knobs such failures look scattered, since 48 fails between 32 and 64. So every rule of a
simple form is a hypothesis here:

=============  ===============================================  ==========================================
form           means, of a product or quotient of a few knobs   for example
=============  ===============================================  ==========================================
at most        it is no larger than some number                 ``threads_x * threads_y <= 1024``
ordered        of two numbers: it is at most 1, or less         ``least <= most``
whole          it is a whole number                             ``tile % (lanes * vector) == 0``
equal          it is some number                                ``ranks * stages * replicas == 64``
=============  ===============================================  ==========================================

A fact of the workload may be divided by such a product, too: ``rows % (threads * tile) == 0``.

A rule says that what breaks it fails, and that all others succeed with some probability, of which nothing
is known beforehand (uniform). How much more likely it makes the outcomes than no rule follows from counts
alone: with k of n tries keeping the rule and all s successes among them the ratio is B(s + 1, k - s + 1) to
B(s + 1, n - s + 1) (Kass and Raftery, Bayes Factors, Journal of the American Statistical Association 90,
1995). One success that breaks a rule refutes it. Which of thousands of rules holds is seldom known for sure,
so predictions average over those that are left. As there may be several rules at once, the failures that the
likeliest one explains are put aside, and another rule is looked for among the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import betaln, logsumexp

from autotune.search.models.arrays import Flags, Floats
from autotune.search.models.products import NEAR, Products, is_whole

SOME = 0.2
"""The prior probability that there is a rule; and, once one is found, that there is another."""
AT_MOST, NO_LARGER, SMALLER, WHOLE, EQUAL = 0.25, 0.27, 0.1, 0.25, 0.13
"""The prior probability of each form, given that there is a rule. Among powers of two one that is no larger
divides, too: then the form that forbids less is the likelier one."""
LEAST = 3
"""It takes so many unexplained failures for a rule to be looked for."""
MOST_RULES = 6
KEPT = 32
"""How many hypotheses about one rule are kept: the likeliest."""
HEEDED = 0.1
"""If it is less probable than this that there is a rule, none is believed in."""
BELIEVED = 0.5
"""From this probability on, what the likeliest hypothesis explains is put aside."""
COUNTED = 256
"""For so many of the likeliest hypotheses it is counted how many bounds they might have had."""
LARGE = 300.0
"""A logarithm that is as good as infinite."""
ONE, LESS = 0.0, -2.0 * NEAR
"""The bounds of the logarithm of a quotient that is at most 1, and of one that is less."""


@dataclass(frozen=True)
class Suspects:
    """Hypotheses about one rule, the likeliest first; arrays of shape (hypotheses,)."""

    exponents: Floats
    """Those of each product; shape (numbers, hypotheses)."""
    low: Floats
    high: Floats
    """The rule is kept if the logarithm of the product is between these two."""
    whole: Flags
    """Whether, instead, the product has to be a whole number."""
    odds: Floats
    """The odds of each hypothesis, against there being no rule."""

    @property
    def probabilities(self) -> Floats:
        """The probability of each; together less than 1."""
        return np.asarray(self.odds / (1.0 + self.odds.sum()))

    def kept(self, logs: Floats) -> Flags:
        """Which rows keep the rule by which hypothesis; shape (n, hypotheses)."""
        values = logs @ self.exponents
        kept = (values > self.low - NEAR) & (values < self.high + NEAR)
        kept[:, self.whole] = is_whole(values[:, self.whole])
        return np.asarray(kept)

    def without(self, refuted: Flags) -> Suspects:
        """The same without what was ``refuted``."""
        left = ~refuted
        return Suspects(
            self.exponents[:, left], self.low[left], self.high[left], self.whole[left], self.odds[left]
        )


def suspected(logs: Floats, good: Flags, *, facts: int = 0, bounds: bool = True) -> Iterator[Suspects]:
    """For each rule behind the outcomes, what it may be. ``logs`` of shape (n, numbers + ``facts``).

    Without ``bounds``, the form "at most" is left out.
    """
    products = Products.of(logs.shape[1] - facts, facts)
    if not products.log_prior.size:
        return
    values = products.exponents.T @ logs.T
    left = np.ones(len(logs), dtype=bool)
    ordered = (partial(_ordered, ONE, NO_LARGER), partial(_ordered, LESS, SMALLER))
    forms = (*((_at_most,) if bounds else ()), *ordered, _whole, _equal)
    for _ in range(MOST_RULES):
        if (left & ~good).sum() < LEAST:
            return
        suspects = _suspects(products, values[:, left], good[left], forms)
        probable = suspects.probabilities.sum()
        if probable < HEEDED:
            return
        yield suspects
        broken = left & ~suspects.kept(logs)[:, 0]
        if probable < BELIEVED or not broken.any():
            return
        left &= ~broken


def _suspects(
    products: Products, values: Floats, good: Flags, forms: Sequence[Callable[[_Outcomes], _Form]]
) -> Suspects:
    """What one rule behind the outcomes may be; ``values`` of shape (products, n)."""
    outcomes = _Outcomes.of(products, values, good)
    found = [form(outcomes) for form in forms]
    odds = np.concatenate([each.log_odds + products.log_prior for each in found])
    first = np.argpartition(-odds, KEPT)[:KEPT] if len(odds) > KEPT else np.arange(len(odds))
    first = first[np.argsort(-odds[first], kind="stable")]
    likely = np.exp(np.minimum(odds[first], LARGE))
    # Those left out are taken to be about the same rules.
    likely *= np.exp(min(float(logsumexp(odds)) - float(logsumexp(odds[first])), LARGE))
    return Suspects(
        products.exponents[:, first % len(values)],
        np.concatenate([each.low for each in found])[first],
        np.concatenate([each.high for each in found])[first],
        np.repeat([each.whole for each in found], len(values))[first],
        likely * SOME / (1.0 - SOME),
    )


@dataclass(frozen=True)
class _Outcomes:
    """What became of the values of each product."""

    products: Products
    values: Floats
    """Shape (products, n)."""
    good: Flags
    """Which tries succeeded; shape (n,)."""
    least: Floats
    most: Floats
    """The smallest and the largest value among the successes; shape (products,)."""
    gain: Floats
    """Entry k: the logarithm of the odds for a rule that k tries keep, all successes among them."""

    @classmethod
    def of(cls, products: Products, values: Floats, good: Flags) -> _Outcomes:
        n, s = len(good), int(good.sum())
        gain = np.full(n + 1, -np.inf)
        gain[s:] = betaln(s + 1, np.arange(n - s + 1) + 1) - betaln(s + 1, n - s + 1)
        succeeded = values[:, good]
        return cls(products, values, good, succeeded.min(axis=1), succeeded.max(axis=1), gain)

    def bounded(self, log_odds: Floats) -> Floats:
        """The odds of rules with a bound, shared among all bounds that the values seen can tell apart."""
        bounds = np.full(len(log_odds), len(self.good) + 1)
        likely = np.argpartition(-log_odds, COUNTED)[:COUNTED] if len(log_odds) > COUNTED else slice(None)
        bounds[likely] = 2 + (np.diff(np.sort(self.values[likely], axis=1), axis=1) > NEAR).sum(axis=1)
        return np.asarray(log_odds - np.log(bounds))


@dataclass(frozen=True)
class _Form:
    """The hypotheses of one form about all products; arrays of shape (products,)."""

    log_odds: Floats
    """The odds of each, given that the rule is about that product."""
    low: Floats
    high: Floats
    whole: bool = False


def _at_most(outcomes: _Outcomes) -> _Form:
    """That a product is less than it is for any failure beyond all successes."""
    # (Of a fact, which does not vary, that says nothing new.)
    within = outcomes.values < outcomes.most[:, None] + NEAR
    beyond = np.where(within, np.inf, outcomes.values).min(axis=1)
    found = np.isfinite(beyond) & ~outcomes.products.of_fact
    log_odds = np.where(found, outcomes.gain[within.sum(axis=1)], -np.inf)
    odds = math.log(AT_MOST) + outcomes.bounded(log_odds)
    return _Form(odds, np.full(len(odds), -np.inf), beyond - 4 * NEAR)


def _ordered(bound: float, prior: float, outcomes: _Outcomes) -> _Form:
    """That one of two numbers is no larger than the other, or smaller. Unlike others, this bound is known."""
    exponents = outcomes.products.exponents
    of_two = (np.count_nonzero(exponents, axis=0) == 2) & (exponents.sum(axis=0) == 0)
    possible = of_two & ~outcomes.products.of_fact & (outcomes.most < bound + NEAR)
    log_odds = np.full(len(possible), -np.inf)
    log_odds[possible] = outcomes.gain[(outcomes.values[possible] < bound + NEAR).sum(axis=1)]
    anything = np.full(len(log_odds), np.inf)
    return _Form(math.log(prior) + log_odds, -anything, np.full(len(log_odds), bound))


def _whole(outcomes: _Outcomes) -> _Form:
    """That a product is a whole number."""
    log_odds = np.full(len(outcomes.most), -np.inf)
    possible = is_whole(outcomes.least) & is_whole(outcomes.most)
    possible[possible] = is_whole(outcomes.values[np.ix_(possible, outcomes.good)]).all(axis=1)
    whole = is_whole(outcomes.values[possible])
    # Where all that does not divide a fact is larger than all that worked, it may just be too large.
    smaller = outcomes.values[possible] > outcomes.least[possible, None] + NEAR
    too_large = outcomes.products.of_fact[possible] & ~(smaller & ~whole).any(axis=1)
    log_odds[possible] = np.where(too_large, -np.inf, outcomes.gain[whole.sum(axis=1)])
    anything = np.full(len(log_odds), np.inf)
    return _Form(math.log(WHOLE) + log_odds, -anything, anything, whole=True)


def _equal(outcomes: _Outcomes) -> _Form:
    """That a product is what it is for all successes."""
    # A product and its inverse are equal to some number at once.
    same = (outcomes.most - outcomes.least < NEAR) & outcomes.products.upright & ~outcomes.products.of_fact
    log_odds = np.full(len(same), -np.inf)
    alike = np.abs(outcomes.values[same] - outcomes.most[same, None]) < NEAR
    log_odds[same] = outcomes.gain[alike.sum(axis=1)]
    return _Form(math.log(EQUAL) + outcomes.bounded(log_odds), outcomes.least, outcomes.most)
