"""Facts of a workload that are said outside the file: ``m=512``, as a shell hands them on."""

from __future__ import annotations

from collections.abc import Iterable

from autotune.errors import InputError, shorten
from autotune.space.configuration import Value
from autotune.space.reading.converters import fact
from autotune.space.reading.fields import Problems
from autotune.space.reading.yaml_nodes import compose

WHERE = "--workload"


def read_given_facts(texts: Iterable[str]) -> dict[str, Value]:
    """Each ``NAME=VALUE`` with its value as a space file would have it: ``512``, ``bfloat16``, ``[1, 2]``.

    Raises :class:`InputError` with every one that is none.
    """
    facts: dict[str, Value] = {}
    problems = Problems()
    for text in texts:
        name, said, value = text.partition("=")
        if not (name and said and value.strip()):
            problems.add(f"{WHERE} is {shorten(text)!r}", None, "NAME=VALUE, such as m=512")
        elif name in facts:
            problems.add(f"{WHERE} says {name} twice", None, "each fact once")
        else:
            found = problems.attempt(lambda: _value(value))  # noqa: B023
            if found is not None:
                facts[name] = found
    problems.raise_all()
    return facts


def _value(text: str) -> Value:
    node, problems = compose(text, WHERE)
    if problems:
        raise InputError(problems)
    return fact(node, WHERE)
