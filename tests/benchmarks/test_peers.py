"""Other people's tuners: how they are told of knobs and failures, and driven on a recorded space."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.measure.recordings.read import read_recording
from autotune.measure.recordings.recording import Recording
from autotune.space.knobs import Choice, Flag, FloatRange, IntegerRange, OrderedValues
from autotune.space.space import Space
from benchmarks.peers import recorded
from benchmarks.peers.client import ROOT, Client, PeerError, find
from benchmarks.peers.contract import Condition, Knob, Worst
from benchmarks.peers.described import described
from benchmarks.recorded_spaces import recorded_space
from tests.recordings import record

MIXED = Space(
    [
        Choice("solver", ("sgd", "adam", "lbfgs")),
        FloatRange("rate", 1e-4, 1.0, scale="log", when="solver != 'lbfgs'"),
        IntegerRange("width", 1, 8),
        IntegerRange("power", 1, 8, scale="log2"),
        Flag("bias"),
        OrderedValues("tile", (1, 2, 30), when="bias"),
    ]
)


class TestDescribed:
    def test_every_kind_has_a_word(self) -> None:
        knobs = {knob.name: knob for knob in described(MIXED)}
        assert knobs["solver"] == Knob("solver", "choice", values=("sgd", "adam", "lbfgs"))
        assert knobs["rate"] == Knob(
            "rate", "float", 1e-4, 1.0, True, (), Condition("solver", ("sgd", "adam"))
        )
        assert knobs["width"] == Knob("width", "integer", 1, 8)
        assert knobs["power"] == Knob("power", "ordered", values=(1, 2, 4, 8))
        assert knobs["tile"].when == Condition("bias", (True,))

    def test_the_words_survive_the_way_to_the_peer(self) -> None:
        for knob in described(MIXED):
            assert Knob.from_json(json.loads(json.dumps(knob.to_json()))) == knob

    def test_a_condition_on_two_knobs_is_refused(self) -> None:
        space = Space([Flag("a"), Flag("b"), IntegerRange("c", 1, 2, when="a and b")])
        with pytest.raises(ValueError, match=r"mentions \['a', 'b'\]"):
            described(space)


class TestWorst:
    def test_a_failure_is_the_worst_so_far(self) -> None:
        worst = Worst()
        a, b, c = {"k": 1}, {"k": 2}, {"k": 3}
        assert worst.numbers([(a, 2.0), (b, 5.0), (c, None)]) == [(a, 2.0), (b, 5.0), (c, 5.0)]
        assert worst.numbers([(b, None)]) == [(b, 5.0)]

    def test_early_failures_wait_for_a_success(self) -> None:
        worst = Worst()
        a, b = {"k": 1}, {"k": 2}
        assert worst.numbers([(a, None)]) == []
        assert worst.numbers([(b, 3.0)]) == [(a, 3.0), (b, 3.0)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("optuna-tpe", ("optuna-tpe", False)),
        ("optuna-tpe-r", ("optuna-tpe", True)),
        ("skopt-et", ("skopt-et", True)),
        ("hebo", ("hebo", True)),
        ("smac", ("smac", False)),
        ("kt-pso", ("kt-pso", False)),
    ],
)
def test_who_gets_a_random_configuration_for_a_useless_one(name: str, expected: tuple[str, bool]) -> None:
    assert recorded.split(name) == expected


def test_a_peer_that_is_absent_is_named_with_what_it_lacks() -> None:
    pytest.importorskip("optuna")
    if _has("kernel_tuner"):
        pytest.skip("Kernel Tuner is installed here")
    with pytest.raises(PeerError, match=r"kt-pso cannot run .*kernel_tuner.*\[peers\]"):
        find("kt-pso", ())


def test_a_peer_that_does_not_exist_is_not_to_be_installed() -> None:
    with pytest.raises(PeerError, match=r"there is no peer 'optuna-tp': expected kt-STRATEGY, optuna-tpe"):
        find("optuna-tp", ())


def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match=r"cannot run .*nowhere"):
        find("smac", (str(tmp_path / "nowhere"),))


def _has(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


@pytest.fixture(scope="module")
def tpe() -> Iterator[Client]:
    with Client(find("optuna-tpe", (sys.executable,))) as client:
        yield client


class TestOptuna:
    def test_it_asks_and_is_told(self, tpe: Client) -> None:
        tpe.start(described(MIXED), 0, 10)
        assert tpe.conditional
        for _ in range(12):
            values = tpe.ask()
            assert values in MIXED
            tpe.tell([(values, float(values["width"]))])
        assert tpe.seconds > 0

    def test_it_learns_from_what_it_did_not_propose(self, tpe: Client) -> None:
        tpe.start(described(MIXED), 0, 10)
        tpe.ask()
        tpe.tell([(dict(MIXED.default()), 1.0), ({**MIXED.default(), "width": 8}, None)])
        assert tpe.ask() in MIXED

    def test_the_same_seed_proposes_the_same(self, tpe: Client) -> None:
        runs = []
        for _ in range(2):
            tpe.start(described(MIXED), 7, 10)
            runs.append([tpe.ask() for _ in range(3)])
        assert runs[0] == runs[1]

    def test_what_it_cannot_do_is_an_error_and_not_the_end(self, tpe: Client) -> None:
        tpe.start(described(MIXED), 0, 10)
        with pytest.raises(PeerError, match="optuna-tpe gave up while it was to tell"):
            tpe.tell([({"width": "many"}, 1.0)])
        tpe.start(described(MIXED), 0, 10)
        assert tpe.ask() in MIXED

    def test_a_killed_process_is_an_error(self) -> None:
        with Client(find("optuna-tpe", (sys.executable,))) as client:
            client.kill()
            with pytest.raises(PeerError, match="ended while it was to ask"):
                client.ask()


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """Two knobs of six values, a third of the combinations recorded, some of them failed."""
    rows = [(a, b) for a in range(6) for b in range(6) if (a + b) % 3 == 0]
    entries = [{"a": a, "b": b, "time": "RuntimeFailedConfig" if a == 5 else 1.0 + a + b} for a, b in rows]
    return read_recording(record(tmp_path / "made.json", {"a": range(6), "b": range(6)}, entries))


@pytest.mark.parametrize("replace", [False, True])
def test_only_new_recorded_configurations_are_tries(recording: Recording, replace: bool) -> None:
    space = recorded_space(recording)
    tried, seconds = recorded.search(find("optuna-tpe", (sys.executable,)), recording, space, 0, 8, replace)
    keys = [tuple(sorted(values.items())) for values in tried]
    assert len(set(keys)) == len(keys) == 8 and seconds > 0
    assert all(recording.find(values) is not None for values in tried)


def test_a_peer_that_finds_nothing_recorded_is_an_error(tmp_path: Path) -> None:
    """Its search had been written down as one without a try, by which no judge can judge."""
    knobs = {f"k{number}": range(9) for number in range(9)}
    entries = [{**dict.fromkeys(knobs, value), "time": 1.0} for value in range(9)]
    recording = read_recording(record(tmp_path / "diagonal.json", knobs, entries))
    with pytest.raises(PeerError, match="proposed nothing that is recorded in 30 asks"):
        recorded.search(
            find("optuna-tpe", (sys.executable,)), recording, recorded_space(recording), 0, 3, False
        )


def test_a_list_that_a_peer_proposes_is_found(tmp_path: Path) -> None:
    tiles = [[n, 8 // n] for n in (1, 2, 4, 8)]
    entries = [{"tile": tile, "time": 1.0 + tile[0]} for tile in tiles]
    recording = read_recording(record(tmp_path / "lists.json", {"tile": tiles}, entries))
    space = recorded_space(recording)
    tried, _ = recorded.search(find("optuna-tpe", (sys.executable,)), recording, space, 0, 4, True)
    assert sorted(values["tile"] for values in tried) == [[1, 8], [2, 4], [4, 2], [8, 1]]


def test_a_peer_that_is_kept_ends_with_the_program_that_keeps_it() -> None:
    """Its process had been left to itself, which Python says of a subprocess that is still running."""
    program = (
        "import sys; from benchmarks.peers.client import find, kept\n"
        "found = find('optuna-tpe', (sys.executable,))\n"
        "client = kept(found)\n"
        "assert kept(found) is client\n"
        "print(client.used() >= 0, client._process.pid, flush=True)\n"
    )
    command = [sys.executable, "-X", "dev", "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "ResourceWarning" not in done.stderr
    assert not Path(f"/proc/{done.stdout.split()[1]}").exists()
