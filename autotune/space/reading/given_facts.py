"""Facts of a workload that are given on the command line, outside the space file: ``m=512``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from autotune.errors import InputError, shorten
from autotune.space.configuration import Value, freeze, plain
from autotune.space.reading.converters import fact, mapping
from autotune.space.reading.fields import Problems
from autotune.space.reading.yaml_nodes import YamlMap, compose, value_at

WHERE = "--workload"


def read_given_facts(texts: Iterable[str]) -> dict[str, Value]:
    """Each ``NAME=VALUE`` with its value as a space file would have it: ``512``, ``bfloat16``, ``[1, 2]``.

    Raises :class:`InputError` with a problem for each text of another form.
    """
    facts: dict[str, Value] = {}
    problems = Problems()
    for text in texts:
        name, said, value = text.partition("=")
        if not (name and said and value.strip()):
            problems.add(f"{WHERE} is {shorten(text)!r}", None, "NAME=VALUE, such as m=512")
        elif name in facts:
            problems.add(f"{WHERE} gives {name} twice", None, "each fact once")
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


def given_beside(text: str, workload: Mapping[str, object]) -> list[str]:
    """``NAME=VALUE`` for each fact that has another value in ``workload`` than in the space file ``text``.

    Empty where ``text`` cannot be read: a store may hold anything.
    """
    try:
        root, _ = compose(text, WHERE)
    except InputError:
        return []
    section = value_at(root, "workload")
    own = mapping(section, "workload", fact, Problems()) if isinstance(section, YamlMap) else {}
    given = {name: plain(freeze(value)) for name, value in workload.items() if name in own}
    return [f"{name}={_written(value)}" for name, value in given.items() if value != plain(own[name])]


def _written(value: object) -> str:
    """``value`` such that :func:`read_given_facts` reads it back; a text without quotes where that works."""
    if isinstance(value, str):
        try:
            if _value(value) == value:
                return value
        except InputError:
            pass
    return json.dumps(value)
