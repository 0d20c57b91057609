"""``search: {first: [...]}`` of a space file: configurations that are tried right after the default."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from autotune.errors import InputError
from autotune.space.configuration import FrozenMap
from autotune.space.feasible_set.configurations import Configurations
from autotune.space.reading.converters import choice, items, mapping
from autotune.space.reading.fields import Converter, Problems, as_map, wrong
from autotune.space.reading.yaml_nodes import YamlList, YamlNode

FORM = "a list of configurations, such as [{tile: 8, unroll: 4}]"


def read_first(space: Configurations | None) -> Converter[tuple[FrozenMap, ...]]:
    """The converter for the list. A knob or value that ``space``, where given, does not have is an error.

    A configuration that the rules forbid is not: rules may depend on the machine and the workload.
    """

    def convert(node: YamlNode, title: str) -> tuple[FrozenMap, ...]:
        if not isinstance(node, YamlList):
            raise wrong(node, title, FORM)
        problems = Problems()
        found = items(node, title, partial(_configuration, space), problems)
        problems.raise_all()
        return tuple(found)

    return convert


def _configuration(space: Configurations | None, node: YamlNode, title: str) -> FrozenMap:
    given, problems = as_map(node, title, "a mapping of knobs to values"), Problems()
    values = mapping(given, title, choice, problems)
    if space is not None:
        names = {knob.name for knob in space.knobs}
        for entry in given:
            where = entry.value.where if entry.key in names else entry.where
            try:
                if entry.key in values:
                    space.canonical(entry.key, values[entry.key])
            except InputError as error:
                found = error.problems[0]
                problems.found.append(replace(found, message=f"{title}: {found.message}", where=where))
    problems.raise_all()
    return FrozenMap(values)
