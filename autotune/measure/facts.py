"""What is kept with a trial beside its metrics, as plain JSON.

Only the standard library is imported, and little of it: training scripts load this.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

CODE = "code"
"""In the facts of a trial: the fingerprint of the code that it ran."""

SURE = "sure"
"""In the facts of a trial that failed by a mistake: true where its configuration cannot be the reason."""

UNREACHED = "unreached"
"""In the facts of a trial of a command: the names of the knobs that never reached it."""

OWN_DEFAULTS = "own_defaults"
"""In the facts of a trial of a script with :func:`autotune.run`: the defaults that it gave, by knob."""

LEFT_RUNNING = "left_running"
"""In the facts of a trial of a command: the names of processes that its runs left; they were ended."""

RESOURCES = "resources"
"""In the facts of a trial: what its code takes, a number by name (registers, say)."""

SAME_CODE_AS = "same_code_as"
"""In the facts of a trial that was not measured: the number of the trial whose code, and result, it has."""

READY_THREADS = "ready_threads"
"""In the facts of a trial: how many threads of its program were ready to run at once, where that was more
than the cores it was pinned to, and the machine has others
(:mod:`autotune.measure.cores.oversubscription`)."""

NETWORK, NOT_SHAPED, MISSING = "network", "not_shaped", "missing"
"""In the facts of a trial of several processes: what connected them, why these are not the links that were
asked for, and what else could not be had (:mod:`autotune.measure.groups.group`)."""

MISTAKE = "mistake"
"""In the facts of a failed trial: what was raised and where, if that is a mistake in the code that was run
or something missing on the machine (:mod:`autotune.measure.phases.mistakes`)."""

CONSTANT_INPUTS = "constant_inputs"
"""In the facts of a trial of a kernel: the inputs of its check that were one number throughout, by name."""

TIMELINE = "timeline"
"""In the facts of a trial: ``{stage: [began, ended, lane]}``, times in seconds since the epoch. The stages
are ``prepare``, ``check`` (where it came before the trial's turn) and ``measure``; the lane is the number of
the worker among those that do this stage side by side."""

STEP, STEPS, CURVE = "step", "steps", "curve"
"""In the facts of a trial under early stopping: its last step, those of a complete trial, and its value at
each rung."""

OWN = (CODE, SURE, RESOURCES, SAME_CODE_AS, CONSTANT_INPUTS, TIMELINE, STEP, STEPS, CURVE)
"""Facts by which a search decides something, so that no objective may give any of that name."""

OF_COMMANDS = (MISTAKE, UNREACHED, OWN_DEFAULTS, LEFT_RUNNING)
"""Further facts that a command's objective gives, so that no program may."""


def given_facts(facts: Mapping[str, object], reserved: Iterable[str] = OWN) -> dict[str, object]:
    """The facts that an objective, a script or a caller gives, as :func:`plain_facts`.

    Raises ``ValueError`` for a name that is ``reserved`` for autotune's own.
    """
    for name in reserved:
        if name in facts:
            raise ValueError(f"the fact {name!r} has a name of autotune's own facts: give it another")
    return plain_facts(facts)


def plain_facts(facts: Mapping[str, object]) -> dict[str, object]:
    """Facts as plain JSON, so that they can be sent and stored whatever types they had.

    Scalars of numpy, torch and the like become plain numbers. Raises ``TypeError`` with the name of a fact
    that is not JSON.
    """
    return {str(name): _plain(value, str(name)) for name, value in facts.items()}


def _plain(value: object, name: str) -> object:
    try:
        return json.loads(json.dumps(value, default=_simpler))
    except (TypeError, ValueError, RuntimeError) as error:  # ValueError: it contains itself
        raise TypeError(
            f"the fact {name!r} must be JSON (text, numbers, lists and dictionaries of them),"
            f" not {value!r:.80} ({type(value).__name__}): {error}"
        ) from error


def _simpler(value: object) -> object:
    """For what JSON does not know: a scalar's number, a mapping's dictionary."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item"):
        return value.item()  # raises for an array of several
    raise TypeError(f"a {type(value).__name__} has no place in it")
