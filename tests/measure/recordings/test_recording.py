"""Recordings of other tuners: whole, cut short at any byte, gzipped, damaged, and the shared real ones."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.measure.recordings.read import read_recording
from autotune.measure.recordings.recording import Recording
from autotune.measure.recordings.salvage import inflate, salvage
from autotune.status import Status

SHARED = Path(__file__).parents[4] / "shared" / "recorded"

KNOBS = {"tile": [8, 16, 32], "layout": ["row", "column"], "fused": [0]}


def entry(tile: int, layout: str, time: object, **more: object) -> dict[str, object]:
    return {"tile": tile, "layout": layout, "fused": 0, "time": time, **more}


ENTRIES = {
    "8,row,0": entry(8, "row", 2.0, times=[1.5, 2.5], compile_time=100, benchmark_time=4.0, framework_time=1),
    "8,column,0": entry(8, "column", "RuntimeFailedConfig", compile_time=90.0, verification_time=3.0),
    "16,row,0": entry(16, "row", 1.25, **{"GFLOP/s": 80.5, "timestamp": "2024-01-01"}),
    "32,row,0": entry(32, "row", 1e20),
}


def cache(entries: object = None, **more: object) -> dict[str, object]:
    head = {
        "device_name": "A GPU",
        "kernel_name": "höhe",
        "tune_params_keys": list(KNOBS),
        "tune_params": KNOBS,
    }
    return {**head, **more, "cache": ENTRIES if entries is None else entries}


def read(folder: Path, content: object, name: str = "recording.json") -> Recording:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    (folder / name).write_bytes(data)
    return read_recording(folder / name)


def test_a_cache_file(tmp_path: Path) -> None:
    recording = read(tmp_path, cache())
    assert (recording.form, recording.kernel, recording.device) == ("kernel-tuner", "höhe", "A GPU")
    assert recording.knobs == {"tile": (8, 16, 32), "layout": ("row", "column"), "fused": (0,)}
    assert recording.damage == ""
    first, failed, third, old_failure = recording.entries
    assert (first.status, first.time, first.readings) == (Status.OK, 0.002, (0.0015, 0.0025))
    assert (first.compile_seconds, first.benchmark_seconds, first.framework_seconds) == (0.1, 0.004, 0.001)
    assert (failed.status, failed.time, failed.error) == (Status.CRASHED, None, "RuntimeFailedConfig")
    assert failed.verification_seconds == 0.003
    assert third.metrics == {"GFLOP/s": 80.5}
    assert (old_failure.status, old_failure.time) == (Status.CRASHED, None)
    assert recording.find({"tile": 16, "layout": "row", "fused": 0}) == third
    assert recording.find({"tile": 16, "layout": "column", "fused": 0}) is None


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("InvalidConfig", Status.INFEASIBLE),
        ("CompilationFailedConfig", Status.INFEASIBLE),
        ("RuntimeFailedConfig", Status.CRASHED),
        ("CorrectnessFailedConfig", Status.WRONG),
        ("SomethingNewConfig", Status.CRASHED),
        (1e20, Status.CRASHED),
        (float("nan"), Status.CRASHED),
        (None, Status.CRASHED),
    ],
)
def test_failures_keep_their_kind(tmp_path: Path, word: object, status: Status) -> None:
    found = read(tmp_path, cache({"8,row,0": entry(8, "row", word)})).entries[0]
    assert (found.status, found.time) == (status, None)
    assert str(word).lower() in found.error.lower()


def test_numbers_may_be_texts_and_lists_may_be_nested(tmp_path: Path) -> None:
    entries = {
        "a": entry(
            8, "row", "2.5", times=[[1.0, "2.0"], [[3.0]], float("nan"), None, -1.0], compile_time="7"
        ),
        "b": entry(16, "row", "nan"),
        "c": entry(32, "row", -1.0, energy="3"),
    }
    first, second, third = read(tmp_path, cache(entries)).entries
    assert (first.status, first.time, first.readings) == (Status.OK, 0.0025, (0.001, 0.002, 0.003))
    assert first.compile_seconds == 0.007
    assert (second.status, second.error) == (Status.CRASHED, "nan")
    assert (third.status, third.error, third.metrics) == (Status.CRASHED, "its time is -1.0", {"energy": 3.0})


def test_a_time_of_hundreds_of_digits_is_said_shortly(tmp_path: Path) -> None:
    [huge] = read(tmp_path, cache({"a": entry(8, "row", 10**400)})).entries
    assert huge.status is Status.CRASHED and len(huge.error) < 100


def test_values_have_one_form(tmp_path: Path) -> None:
    """An entry may say 16.0 where 16 was declared, and have a value that was not declared."""
    entries = {"a": entry(16.0, "row", 1.0), "b": entry(4, "tiled", 2.0)}  # type: ignore[arg-type]
    recording = read(tmp_path, cache(entries))
    assert recording.knobs["tile"] == (4, 8, 16, 32)
    assert recording.knobs["layout"] == ("row", "column", "tiled")
    assert isinstance(recording.entries[0].configuration["tile"], int)


def test_a_later_entry_of_a_configuration_replaces_the_earlier(tmp_path: Path) -> None:
    recording = read(tmp_path, cache({"a": entry(8, "row", 1.0), "b": entry(8, "row", 3.0)}))
    assert [e.time for e in recording.entries] == [0.003]


def test_entries_that_do_not_count_are_counted(tmp_path: Path) -> None:
    """Six of twelve had gone without a word."""
    entries = {f"4,row,{n}": entry(4, "row", time) for n, time in enumerate((1.0, 2.0, 2.0, 3.0))}
    assert read(tmp_path, cache(entries)).replaced == 2


@pytest.mark.parametrize("cut", [0, 1])
def test_an_entry_whose_key_stands_again_is_counted(tmp_path: Path, cut: int) -> None:
    """A parser takes the last of them, so that the earlier time had gone without a word."""
    text = json.dumps(cache({"a": entry(4, "row", 1.0), "b": entry(4, "row", 3.0)})).replace('"b"', '"a"')
    recording = read(tmp_path, text[: len(text) - cut].encode())
    assert recording.replaced == 1 and [e.time for e in recording.entries] == [0.003]


def test_entries_without_a_time_are_left_out_and_counted(tmp_path: Path) -> None:
    """One had refused the whole file."""
    bare = {"tile": 32, "layout": "column", "fused": 0}
    recording = read(tmp_path, cache({**ENTRIES, "32,column,0": bare}))
    assert len(recording.entries) == len(ENTRIES) and recording.untimed == 1
    assert recording.find(bare) is None
    assert read(tmp_path, cache()).untimed == 0


def test_a_knob_whose_name_is_left_out_of_the_keys_is_one(tmp_path: Path) -> None:
    """It had become a metric, and of three configurations that differ in it one was left."""
    entries = {str(n): {**entry(4, "row", 1.0 + n), "method": n} for n in range(3)}
    recording = read(tmp_path, cache(entries, tune_params={**KNOBS, "method": [0, 1, 2]}))
    assert list(recording.knobs) == [*KNOBS, "method"] and len(recording.entries) == 3


def layouts() -> list[bytes]:
    """The same file as Kernel Tuner writes it (an entry a line) and as others do (indented, dense)."""
    head = json.dumps(cache({}), ensure_ascii=False, indent=0)[: -len("}\n}")]
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in ENTRIES.items())
    own = f"{head}\n{lines}}}\n}}"
    assert json.loads(own) == cache()
    dense = json.dumps(cache(), ensure_ascii=False, separators=(",", ":"))
    return [text.encode() for text in (own, dense, json.dumps(cache(), ensure_ascii=False, indent=2))]


@pytest.mark.parametrize("layout", range(3))
def test_a_file_cut_at_any_byte_gives_its_complete_entries(tmp_path: Path, layout: int) -> None:
    data = layouts()[layout]
    whole = read(tmp_path, data)
    ends = _ends_of_entries(data)
    for cut in range(len(data)):
        expected = sum(end <= cut for end in ends)
        if expected == 0:
            with pytest.raises(InputError):
                read(tmp_path, data[:cut])
            continue
        found = read(tmp_path, data[:cut])
        assert found.entries == whole.entries[:expected], cut
        assert found.damage or not data[cut:].strip(), cut
        assert found.knobs == whole.knobs


def _ends_of_entries(data: bytes) -> list[int]:
    """Where each entry's closing brace ends, found by counting braces, none of which are inside a text."""
    depth, ends = 0, []
    start = data.index(b'"cache"')
    for place, letter in enumerate(data):
        depth += (letter == ord("{")) - (letter == ord("}"))
        if place > start and letter == ord("}") and depth == 2:
            ends.append(place + 1)
    assert len(ends) == len(ENTRIES)
    return ends


def test_what_kernel_tuner_leaves_after_a_crash(tmp_path: Path) -> None:
    """It ends each entry with a comma and a newline, and closes the file only when it is done."""
    own = layouts()[0].decode()
    open_file = own[: own.rindex("}\n}")] + ",\n"
    assert len(read(tmp_path, open_file.encode()).entries) == len(ENTRIES)
    assert len(read(tmp_path, (open_file + "}}").encode()).entries) == len(ENTRIES)
    assert len(read(tmp_path, ("\ufeff" + own).encode()).entries) == len(ENTRIES)


@pytest.mark.parametrize("name", ["recording.json.gz", "named-otherwise.json"])
def test_gzipped_whatever_its_name(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, gzip.compress(layouts()[0]), name).entries == read(tmp_path, layouts()[0]).entries


def test_a_gzip_stream_cut_at_any_byte_gives_a_prefix(tmp_path: Path) -> None:
    whole = read(tmp_path, layouts()[1]).entries
    data = gzip.compress(layouts()[1], mtime=0)
    sizes = set()
    for cut in range(len(data)):
        try:
            found = read(tmp_path, data[:cut])
        except InputError:
            continue
        assert found.entries == whole[: len(found.entries)]
        assert found.damage
        sizes.add(len(found.entries))
    assert len(whole) in sizes


def test_gzip_members_one_after_another() -> None:
    parts = gzip.compress(b"{}" * 30_000) + gzip.compress(b"[]")
    assert inflate(parts) == (b"{}" * 30_000 + b"[]", True)
    assert inflate(parts[:-3])[1] is False


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 60))
def test_no_bytes_raise_anything_but_an_input_error(junk: bytes, place: int, dropped: int) -> None:
    data = layouts()[1]
    damaged = data[:place] + junk + data[place + dropped :]
    salvaged = salvage(damaged, frozenset({"cache"}))
    assert isinstance(salvaged.document, dict)


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from(["cache", "results", "tune_params", "tune_params_keys", "metadata"]),
)
def test_odd_contents_are_input_errors(
    tmp_path_factory: pytest.TempPathFactory, odd: object, where: str
) -> None:
    folder = tmp_path_factory.mktemp("odd")
    for document in ({**cache(), where: odd}, {**t4([result()]), where: odd}):
        try:
            recording = read(folder, document)
        except InputError as error:
            assert str(folder) in str(error)
        else:
            assert recording.entries


def test_errors_say_what_is_lacking(tmp_path: Path) -> None:
    def message(content: object) -> str:
        with pytest.raises(InputError) as caught:
            read(tmp_path, content)
        return str(caught.value)

    assert "not a recording" in message(b"") and "'cache'" in message(b"")
    assert "not a recording" in message([1, 2])
    assert "can be read: no JSON object" in message(b"tile,time\n8,1.0\n")
    assert "breaks off" in message(layouts()[0][:80])
    assert "no complete configuration" in message(cache({}))
    assert "what its knobs are" in message({"cache": ENTRIES})
    assert "lacks the knob 'fused'" in message(cache({"8,row": {"tile": 8, "layout": "row", "time": 1}}))
    assert "has no 'time'" in message(cache({"8,row,0": {"tile": 8, "layout": "row", "fused": 0}}))
    assert "must be an object" in message({"cache": [], "device_name": "a"})
    assert "'results' must be a list" in message({"results": {}})
    assert "autotune recipes import FILE" in message({"autotune_recipes": 2, "recipes": []})
    assert "autotune convert FILE" in message({"General": {}, "ConfigurationSpace": {}})
    assert "90 more entries" in message(cache({str(i): 1 for i in range(100)}))
    assert "did you mean 'cache'" in message({"cach": {}})
    assert "'cache' must be an object" in message({"cache": [1]}) and "'results' must be a list" in message(
        {"results": {}}
    )
    with pytest.raises(InputError, match="cannot read "):
        read_recording(tmp_path / "nowhere.json")
    with pytest.raises(InputError, match="cannot read "):
        read_recording(tmp_path)


# -- T4 ------------------------------------------------------------------------------------------


def result(
    tile: int = 8, value: object = 2.0, unit: str = "miliseconds", **more: object
) -> dict[str, object]:
    return {
        "configuration": {"tile": tile, "layout": "row"},
        "times": {"compilation": 10.0, "framework": 1.0, "validation": 2.0, "runtimes": [1.5, 2.5]},
        "invalidity": "correct",
        "correctness": 1,
        "measurements": [{"name": "time", "value": value, "unit": unit}],
        "objectives": ["time"],
        **more,
    }


def t4(results: list[dict[str, object]], unit: str = "miliseconds") -> dict[str, object]:
    return {"metadata": {"timeunit": unit}, "results": results, "schema_version": "1.0.0"}


def test_a_t4_file(tmp_path: Path) -> None:
    recording = read(tmp_path, t4([result(16), result(8, 3.0)]))
    first, second = recording.entries
    assert recording.form == "t4" and recording.knobs == {"tile": (8, 16), "layout": ("row",)}
    assert (first.time, first.readings, first.compile_seconds) == (0.002, (0.0015, 0.0025), 0.01)
    assert (first.verification_seconds, first.benchmark_seconds) == (0.002, 0.004)
    assert second.time == 0.003


def test_results_that_were_not_measured_are_left_out_and_counted(tmp_path: Path) -> None:
    """One had refused the whole file."""
    bare = result(4, measurements=[], times={"compilation": 10.0})
    recording = read(tmp_path, t4([result(16), bare]))
    assert [entry.configuration["tile"] for entry in recording.entries] == [16] and recording.untimed == 1
    with pytest.raises(InputError, match=r"result 1 is correct, but was not measured\n.*times.runtimes"):
        read(tmp_path, t4([bare]))


@pytest.mark.parametrize(
    ("unit", "factor"), [("seconds", 1.0), ("milliseconds", 1e-3), ("Microseconds", 1e-6), ("ns", 1e-9)]
)
def test_units_of_a_measurement(tmp_path: Path, unit: str, factor: float) -> None:
    assert read(tmp_path, t4([result(value=2, unit=unit, times={})])).entries[0].time == 2 * factor
    assert read(tmp_path, t4([result(value=2, unit=unit)], unit)).entries[0].readings[0] == 1.5 * factor


def test_a_time_of_null_is_that_of_the_runtimes(tmp_path: Path) -> None:
    """The entry had been left out as one that was not measured."""
    [entry] = read(tmp_path, t4([result(value=None)], "s")).entries
    assert (entry.status, entry.time) == (Status.OK, 2.0)
    with pytest.raises(InputError, match="was not measured"):
        read(tmp_path, t4([result(value=None, times={})]))


def test_a_time_and_runtimes_that_cannot_be_in_the_units_said_are_refused(tmp_path: Path) -> None:
    """The runtimes alone had been replayed: 1500 s of what had taken 1.5 ms."""
    times = {"runtimes": [1.5e6, 1.6e6]}
    broken = {"value": 1.5e6, "unit": "ns", "times": times}
    with pytest.raises(InputError, match=r"(?s)0.0015 s and runtimes of 1500 to 1600 s.*metadata.timeunit"):
        read(tmp_path, t4([result(**broken)]))  # type: ignore[arg-type]
    assert read(tmp_path, t4([result(**broken)], "ns")).entries[0].readings == (0.0015, 0.0016)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"(?s)a time of 2 s and runtimes of 0.0015 s, .*metadata.timeunit"):
        read(tmp_path, t4([result(value=2.0, unit="s", times={"runtimes": [1.5]})]))
    failed = result(**broken, invalidity="runtime")  # type: ignore[arg-type]
    assert read(tmp_path, t4([failed])).entries[0].status is Status.CRASHED


def test_an_unknown_unit_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"fortnights.*\n.*expected: a unit of time"):
        read(tmp_path, t4([result(unit="fortnights")]))


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"invalidity": "compile"}, Status.INFEASIBLE),
        ({"invalidity": "constraints"}, Status.INFEASIBLE),
        ({"invalidity": "runtime"}, Status.CRASHED),
        ({"invalidity": "timeout"}, Status.TIMEOUT),
        ({"invalidity": "correctness"}, Status.WRONG),
        ({"correctness": 0}, Status.WRONG),
        ({"invalidity": "correct", "value": "CompilationFailedConfig"}, Status.INFEASIBLE),
        ({"invalidity": "runtime", "status": "out-of-memory"}, Status.OUT_OF_MEMORY),
        ({"value": 1e20, "unit": "ns"}, Status.CRASHED),  # that is no time, whatever its unit
        ({"status": "no such status"}, Status.OK),
    ],
)
def test_invalidity_of_t4(tmp_path: Path, more: dict[str, object], status: Status) -> None:
    value = more.pop("value", 2.0) if "value" in more else 2.0
    found = read(tmp_path, t4([result(value=value, **more)])).entries[0]  # type: ignore[arg-type]
    assert found.status is status
    assert (found.time is None) == status.failed


def test_a_failure_of_t4_keeps_its_word_unless_it_has_a_message(tmp_path: Path) -> None:
    bare, told = (
        result(8, invalidity="compile"),
        result(16, invalidity="compile", message="too many registers"),
    )
    assert [entry.error for entry in read(tmp_path, t4([bare, told])).entries] == [
        "compile",
        "too many registers",
    ]


def test_a_t4_file_cut_short(tmp_path: Path) -> None:
    data = json.dumps(t4([result(8), result(16)])).encode()
    for cut in range(data.index(b"[{") + 1, len(data)):
        try:
            assert len(read(tmp_path, data[:cut]).entries) in (1, 2)
        except InputError as error:
            assert "no complete configuration" in str(error)
    assert len(read(tmp_path, data[:-20]).entries) == 2


# -- the shared recordings -----------------------------------------------------------------------


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared recordings are not on this machine")
@pytest.mark.parametrize(
    ("name", "knobs", "statuses"),
    [
        ("convolution-a100", 7, {"ok": 4201, "crashed": 155, "infeasible": 6}),
        ("convolution-mi250x", 7, {"ok": 4362}),
        ("convolution-w7800", 7, {"ok": 4246, "infeasible": 116}),
        ("gemm-rtx3090", 10, {"ok": 17956}),
        ("gemm-titanrtx", 10, {"ok": 17956}),
        ("pnpoly-rtx3090", 4, {"ok": 3774, "crashed": 318}),
        ("pnpoly-rtx3090.t4", 4, {"ok": 3762, "crashed": 330}),
    ],
)
def test_shared_recordings(name: str, knobs: int, statuses: dict[str, int]) -> None:
    recording = read_recording(SHARED / f"{name}.json.gz")
    assert dict(Counter(str(e.status) for e in recording.entries)) == statuses
    assert sum(len(values) > 1 for values in recording.knobs.values()) == knobs
    assert not recording.damage
    for found in recording.entries:
        assert (found.time is None) == found.status.failed
        if recording.form == "kernel-tuner" and found.time is not None:
            assert found.time == pytest.approx(sum(found.readings) / len(found.readings), rel=1e-6)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared recordings are not on this machine")
def test_a_shared_recording_cut_in_the_middle(tmp_path: Path) -> None:
    data = (SHARED / "pnpoly-rtx3090.json.gz").read_bytes()
    cut = read(tmp_path, data[: len(data) // 2])
    assert 1500 < len(cut.entries) < 2600 and cut.damage


def results_of(folder: Path, *results: dict[str, object]) -> Recording:
    given = [{"configuration": {"a": n}, **one} for n, one in enumerate(results)]
    return read(folder, t4(given, "ms"))


def test_a_status_that_contradicts_the_invalidity_is_not_believed(tmp_path: Path) -> None:
    times = {"runtimes": [1.0]}
    found = results_of(
        tmp_path,
        {"times": times, "invalidity": "timeout", "status": "ok"},
        {"times": times, "invalidity": "runtime", "status": "out-of-memory"},
        {"times": times, "invalidity": "correct", "status": "pruned"},
    )
    assert [one.status for one in found.entries] == [Status.TIMEOUT, Status.OUT_OF_MEMORY, Status.PRUNED]


def test_one_metric_in_two_units_is_refused(tmp_path: Path) -> None:
    def power(value: float, unit: str) -> dict[str, object]:
        time = {"name": "time", "value": 1.0, "unit": "ms"}
        return {"measurements": [time, {"name": "power", "value": value, "unit": unit}]}

    with pytest.raises(InputError, match="result 2 gives 'power' in 'mW', and one before it in 'W'"):
        results_of(tmp_path, power(1.0, "W"), power(1000.0, "mW"))
