"""Values as programs are given them: in arguments and in every form of config file."""

from __future__ import annotations

import json
import shlex
import subprocess
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from autotune.measure.commands.placeholders import as_text, config_document, placeholder_values
from autotune.space.configuration import Configuration, FrozenMap, Value, plain
from autotune.space.placeholders import fill


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (16, "16"),
        (0.001, "0.001"),
        (1e-05, "1e-05"),
        ("row major", "row major"),
        (("i", "j", "k"), "i,j,k"),
        ((1, True), "1,true"),
        (FrozenMap({"embed": "gpu:0", "head": 1}), '{"embed":"gpu:0","head":1}'),
    ],
)
def test_as_text(value: Value, text: str) -> None:
    assert as_text(value) == text


def test_placeholder_values() -> None:
    values = placeholder_values(
        {"tile": 8, "order": ("i", "j")}, {"m": 960, "shape": [2, 3]}, "/tmp", "/tmp/x.json"
    )
    line = "--tile={tile} {order} {workload.m} {workload.shape} {folder} {config} {{tile}} [{inactive}]"
    assert fill(line, values) == "--tile=8 i,j 960 2,3 /tmp /tmp/x.json {tile} []"


KNOBS = st.text("abcdefgh_", min_size=1, max_size=8) | st.sampled_from(
    ["y", "No", "on", "größe", "TRUE", "null"]
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\ufeff"), max_size=10)
SCALARS = (
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
)
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(TEXTS, SCALARS, max_size=3)
CONFIGURATIONS = st.dictionaries(KNOBS, VALUES, max_size=5).map(Configuration)


def _same(found: object, configuration: Configuration) -> bool:
    return json.dumps(found, sort_keys=True) == json.dumps(plain(configuration), sort_keys=True)


@given(CONFIGURATIONS)
def test_json_and_toml_read_back(configuration: Configuration) -> None:
    assert _same(json.loads(config_document(".json", configuration)), configuration)
    assert _same(tomllib.loads(config_document(".toml", configuration)), configuration)


@given(st.dictionaries(KNOBS, st.booleans() | st.integers() | st.floats(-1e30, 1e30) | TEXTS, min_size=1))
@pytest.mark.parametrize("version", [(1, 1), (1, 2)])
def test_yaml_reads_back_in_either_version(version: tuple[int, int], values: dict[str, Value]) -> None:
    reader = YAML(typ="safe", pure=True)
    reader.version = version
    found = reader.load(config_document(".yaml", values))
    assert found == values and [type(v) for v in found.values()] == [type(v) for v in values.values()]


def test_yaml_of_lists_and_tables() -> None:
    values = Configuration({"order": ["i", "j"], "place": {"embed": "gpu:0"}, "rate": 1e-05})
    text = config_document(".yml", values)
    assert text == 'order: ["i", "j"]\nplace: {"embed": "gpu:0"}\nrate: 1.0e-05\n'
    assert YAML(typ="safe").load(text) == plain(values)


@given(st.dictionaries(st.text("abc_", min_size=1), st.booleans() | st.integers() | TEXTS, max_size=4))
def test_env_can_be_read_by_a_shell(values: dict[str, Value]) -> None:
    lines = config_document(".env", values)
    words = shlex.split(lines)
    assert words == [f"{name}={as_text(value)}" for name, value in values.items()]


def test_env_in_a_real_shell() -> None:
    text = config_document(".env", {"a": "it's $HOME", "b": True})
    done = subprocess.run(["sh", "-c", f'{text}\nprintf \'%s|%s\' "$a" "$b"'], capture_output=True, text=True)
    assert done.stdout == "it's $HOME|true"


def test_an_unknown_ending_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\.ini.*\.toml"):
        config_document(".ini", {})
