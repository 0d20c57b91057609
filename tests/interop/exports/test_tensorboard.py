"""A study for TensorBoard: its own reader finds the hyper-parameters and the curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autotune.errors import InputError
from autotune.interop.exports.tensorboard import export_study, kinds_of
from tests.interop.exported import make, make_mixed

pytest.importorskip("tensorboard", reason="TensorBoard is not installed")


def read(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder))
    found.Reload()
    return found


def test_tensorboard_reads_it(tmp_path: Path) -> None:
    from tensorboard.plugins.hparams import metadata

    store = make(tmp_path / "study.db")
    folder = tmp_path / "board"
    assert export_study(store, store.study(), folder) == 8
    assert len(list(folder.iterdir())) == 9
    content = read(folder).PluginTagToContent("hparams")
    experiment = metadata.parse_experiment_plugin_data(content[metadata.EXPERIMENT_TAG])
    assert {info.name for info in experiment.hparam_infos} >= {"tile", "lr", "order", "autotune.status"}
    stopped = read(folder / "trial-00007")
    assert next((event.step, event.value) for event in stopped.Scalars("time")) == (1, 2.0)
    start = metadata.parse_session_start_info_plugin_data(
        stopped.PluginTagToContent("hparams")[metadata.SESSION_START_INFO_TAG]
    )
    assert start.hparams["tile"].number_value == 8.0
    assert start.hparams["autotune.status"].string_value == "pruned"
    with pytest.raises(InputError, match="is not empty"):
        export_study(store, store.study(), folder)


def test_each_value_is_looked_at_once_for_the_types() -> None:
    """It was once for each trial: of 2,000 trials with ten knobs that took five seconds."""
    looked: list[str] = []

    class Counted(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            looked.append(name)
            return super().__getitem__(name)

    tried = [Counted(tile=number, kind="a") for number in range(100)]
    kinds = kinds_of(tried)
    assert kinds["tile"] != kinds["kind"]
    assert len(looked) <= 200


@pytest.mark.parametrize("there", [False, True])
def test_an_interrupt_leaves_nothing_in_the_way_of_the_next_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    store, folder = make(tmp_path / "study.db"), tmp_path / "boards" / "board"
    folder.parent.mkdir()
    if there:
        folder.mkdir()
    write, written = EventFileWriter.add_event, []

    def interrupted(writer: Any, event: Any) -> None:
        written.append(write(writer, event))
        if len(written) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(EventFileWriter, "add_event", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export_study(store, store.study(), folder)
    monkeypatch.undo()
    assert list(folder.parent.iterdir()) == ([folder] if there else [])
    assert export_study(store, store.study(), folder) == 8
    assert list(folder.parent.iterdir()) == [folder] and len(list(folder.iterdir())) == 9


def test_a_knob_of_several_kinds_can_be_sorted_by(tmp_path: Path) -> None:
    """TensorBoard compares the values of one hyper-parameter with each other."""
    from tensorboard.plugins.hparams import metadata

    store = make_mixed(tmp_path / "study.db")
    folder = tmp_path / "board"
    export_study(store, store.study(), folder)
    found = set()
    for trial in folder.glob("trial-*"):
        content = read(trial).PluginTagToContent("hparams")[metadata.SESSION_START_INFO_TAG]
        hparams = metadata.parse_session_start_info_plugin_data(content).hparams
        assert hparams["tile"].WhichOneof("kind") == "number_value"
        assert hparams["layout"].WhichOneof("kind") == "string_value"
        found.add(hparams["layout"].string_value)
    assert found == {"row", "[1, 2]", '{"block": 4, "deep": {"er": [1]}}', "true", "1.5"}
