"""Every space in the reference is read; what the reference says of defaults and keys is so."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.search.registry import STRATEGIES, missing_packages, strategy_class
from autotune.space.reading.command import COMMAND_KEYS
from autotune.space.reading.knobs import ALL_KEYS
from autotune.space.reading.reader import KEYS, parse_family, parse_spec
from autotune.space.spec import Budget, MeasureSettings, SearchSettings

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "space-yaml.md"
TEXT = REFERENCE.read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


def test_there_is_an_example_for_every_kind_of_knob() -> None:
    assert len(BLOCKS) >= 15
    together = "\n".join(BLOCKS)
    assert all(
        f"{kind}:" in together for kind in ("values", "range", "choices", "flag", "permutation", "assign")
    )


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: re.search(r"name: (\S+)", block)[1])
def test_block_is_read(block: str) -> None:
    for spec in parse_family(block, "space.yaml", device={"l1_bytes": 32768}).specs:
        assert spec.space.default() in spec.space


@pytest.mark.parametrize(
    "key",
    [
        *KEYS,
        *ALL_KEYS,
        *COMMAND_KEYS,
        *(field.name for settings in (SearchSettings, MeasureSettings, Budget) for field in fields(settings)),
    ],
)
def test_every_key_is_described(key: str) -> None:
    assert re.search(rf"`{key}[`:]", TEXT), f"the reference does not mention {key}"


def test_the_table_of_measure_has_the_defaults() -> None:
    defaults = MeasureSettings()
    for name, shown in re.findall(r"^\| `(\w+)` \|.*\| `([^`]+)` \|$", TEXT, flags=re.MULTILINE):
        if hasattr(defaults, name):
            value = getattr(defaults, name)
            given = parse_spec(f"{MINIMAL}measure: {{{name}: {shown}}}\n").measure
            assert getattr(given, name) == value


def test_the_options_shown_are_those_of_the_strategies() -> None:
    table = TEXT.partition("| strategy | its options")[2].partition("\n\n")[0]
    shown = {
        name: dict(re.findall(r"`(\w+): ([^`]+)`", options))
        for names, options in re.findall(r"^\| (.*?) \| (.*) \|$", table, flags=re.MULTILINE)
        for name in re.findall(r"`([\w-]+)`", names)
    }
    for name in (one for one in STRATEGIES if not missing_packages(one)):
        options = ", ".join(f"{key}: {value}" for key, value in shown.get(name, {}).items())
        text = f"{MINIMAL}search: {{strategy: {name}, options: {{{options}}}}}\n"
        assert dict(parse_spec(text).search.options) == dict(strategy_class(name).defaults), name


MINIMAL = "autotune: 1\nname: a\nobjective: a.py:A\nknobs: {a: {values: [1]}}\n"


def test_the_problems_shown_are_what_is_said() -> None:
    (broken,) = re.findall(r"^```yaml broken\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
    (said,) = re.findall(r"^```text\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
    with pytest.raises(InputError) as error:
        parse_spec(broken, "space.yaml")
    assert f"autotune: {error.value}\n" == said
