"""Whatever is in a space file, reading it gives a study or an InputError, soon and with words."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.space.reading.reader import parse_spec
from autotune.space.reading.space_file import decode

ROOT = Path(__file__).parents[3]
DEVICE = {"l1_bytes": 32768, "l2_bytes": 1048576, "cores": 2, "names": ("cpu", "cuda:0")}
REFERENCE = (ROOT / "docs" / "reference" / "space-yaml.md").read_text()
VALID = [
    *re.findall(r"^```yaml\n(.*?)^```", REFERENCE, flags=re.MULTILINE | re.DOTALL),
    *(path.read_text() for path in sorted((ROOT / "searchspaces").glob("*.yaml"))),
]
BROKEN = [path.read_text() for path in sorted((Path(__file__).parent / "bad").glob("*.yaml"))]
ENOUGH_SECONDS = 20.0
"""Far beyond what any of these inputs takes: a hang is caught, a slow machine is not."""

SIGNS = st.sampled_from([*"{}[],:-#&*!|>'\"%@`?\t\n\r =<()$\\", "\x00", "\ufeff", "\u2028", "é", "𝔘", "\x85"])
VOCABULARY = """
knobs values range choices flag permutation assign to default when scale log2 log step devices metrics
goal command run config pattern objective replay workload workloads held_out constraints true false null ~
.nan .inf -.inf 0 -1 1e999 1e-3 0x1F 9223372036854775808 1e400 {} [] [[]] {a:} !!str <<: & * | >
device.cores workload.m order[0] and or not in ** // log2(0) 2**2**2**2 9**9**9 1/0 ceildiv(1,0) min()
count(place,'cpu')
"""
WORDS = st.sampled_from(VOCABULARY.split())

slow_machines_may = settings(deadline=None, suppress_health_check=list(HealthCheck))


def read(text: str) -> None:
    """Read ``text``; anything but a study or a well-formed InputError fails the test."""
    began = time.monotonic()
    try:
        parse_spec(text, "space.yaml", device=DEVICE)
    except InputError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.message.strip()
            assert problem.where is not None
        assert str(error).encode()  # can be printed
    assert time.monotonic() - began < ENOUGH_SECONDS


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A known text with a few characters, words or lines inserted, deleted, replaced, swapped or repeated."""
    text = draw(st.sampled_from(VALID + BROKEN))
    for _ in range(draw(st.integers(1, 4))):
        pieces = re.split(draw(st.sampled_from([r"()", r"(\n)", r"(\W)"])), text)
        if not pieces:
            return text
        place = draw(st.integers(0, len(pieces) - 1))
        other = draw(st.integers(0, len(pieces) - 1))
        match draw(st.sampled_from(["insert", "delete", "replace", "swap", "repeat"])):
            case "insert":
                pieces.insert(place, draw(SIGNS | WORDS | st.text(max_size=3)))
            case "delete":
                del pieces[place]
            case "replace":
                pieces[place] = draw(SIGNS | WORDS | st.text(max_size=3))
            case "swap":
                pieces[place], pieces[other] = pieces[other], pieces[place]
            case "repeat":
                pieces[place] *= draw(st.integers(2, 40))
        text = "".join(pieces)
    return text


LEAF = (
    WORDS
    | st.integers().map(str)
    | st.floats().map(repr)
    | st.sampled_from(["tile", "'row'", '"{tile}"', "10m"])
)
KEYS = WORDS.filter(str.isidentifier) | st.sampled_from(
    ["tile", "autotune", "name", "budget", "measure", "time"]
)
FLOW = st.recursive(
    LEAF,
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(KEYS, inner, max_size=4).map(
            lambda d: "{" + ", ".join(f"{key}: {value}" for key, value in d.items()) + "}"
        )
    ),
    max_leaves=12,
)
HEAD = "autotune: 1\nname: fuzz\nobjective: a.py:A\n"


@given(mutated())
@settings(slow_machines_may, max_examples=400)
def test_mutated_spaces(text: str) -> None:
    read(text)


@given(st.dictionaries(KEYS, FLOW, max_size=6))
@settings(slow_machines_may, max_examples=150)
def test_random_sections(sections: dict[str, str]) -> None:
    read("".join(f"{key}: {value}\n" for key, value in sections.items()))


@given(
    st.dictionaries(st.sampled_from(["tile", "depth", "order", "place"]), FLOW, min_size=1), st.lists(LEAF)
)
@settings(slow_machines_may, max_examples=200)
def test_random_knobs_and_constraints(knobs: dict[str, str], rules: list[str]) -> None:
    body = "".join(f"  {name}: {value}\n" for name, value in knobs.items())
    read(f"{HEAD}knobs:\n{body}constraints:\n" + "".join(f"  - {rule}\n" for rule in rules))


@given(st.text(alphabet=st.characters(codec=None), max_size=200))
@settings(slow_machines_may, max_examples=150)
def test_any_text(text: str) -> None:
    read(text)


@given(st.binary(max_size=200))
@settings(slow_machines_may, max_examples=150)
def test_any_bytes(data: bytes) -> None:
    try:
        text = decode(data, "space.yaml")
    except InputError as error:
        assert error.problems[0].where is not None
        return
    read(text)


@pytest.mark.slow
@given(mutated())
@settings(slow_machines_may, max_examples=20_000)
def test_many_mutated_spaces(text: str) -> None:
    read(text)
