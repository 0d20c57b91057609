"""Every notebook runs from top to bottom, headless, on the recorded studies."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.interop.archives.importing import import_archive
from autotune.interop.archives.writing import write_archive
from autotune.report.recorded import notebook_store
from autotune.store.store import Store
from tests.store import postgres

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install nbclient ipykernel")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install nbclient ipykernel")

RESULTS = Path(__file__).parents[2] / "results"
NOTEBOOKS = sorted(RESULTS.glob("*.ipynb"))
MOST_BYTES = 1_000_000
MOST_LINES = 18
"""Of a cell: the work is in autotune.report."""


def run(notebook: Path) -> list[dict[str, object]]:
    """The outputs of a run in the notebook's own folder."""
    document = nbformat.read(notebook, as_version=4)
    client = nbclient.NotebookClient(
        document, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(notebook.parent)}}
    )
    client.execute()
    return [output for cell in document.cells if cell.cell_type == "code" for output in cell.outputs]


def test_there_are_notebooks() -> None:
    names = {path.name for path in NOTEBOOKS}
    assert names >= {"dashboard.ipynb", "study.ipynb", "compare.ipynb", "provenance.ipynb"}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_from_top_to_bottom(notebook: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AUTOTUNE_STORE", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    outputs = run(notebook)
    assert not [o for o in outputs if o["output_type"] == "error"]
    assert sum("image/png" in o.get("data", {}) for o in outputs) >= (notebook.stem != "provenance")  # type: ignore[attr-defined, operator, misc]


def test_it_shows_a_store_of_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tests.report.studies import Written

    written = Written(tmp_path)
    written.trial({"tile": 1}, 1.0)
    written.store.close()
    monkeypatch.setenv("AUTOTUNE_STORE", f"sqlite:///{tmp_path}/written.db")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shutil.copy(RESULTS / "dashboard.ipynb", tmp_path)
    said = json.dumps(run(tmp_path / "dashboard.ipynb"), default=str)
    assert "gemm#1" in said and "stencil" not in said


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The recorded studies on a PostgreSQL server, brought there as archives."""
    if reason := postgres.why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("archives")
    with postgres.server() as socket:
        url = postgres.make_database(socket, "recorded")
        with Store.open(notebook_store(), readonly=True) as store:
            for study in store.studies():
                write_archive(store, study, folder / f"{study.id:03}.zip")
        for archive in sorted(folder.iterdir()):
            import_archive(archive, url)
        yield url


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_over_a_store_on_a_server(
    notebook: Path, remote: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AUTOTUNE_STORE", remote)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    outputs = run(notebook)
    assert not [o for o in outputs if o["output_type"] == "error"]
    said = json.dumps(outputs, default=str)
    assert any(name in said for name in ("gemm-c", "stencil-c", "digits-mlp", "digits-front"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_cells_are_short_and_its_outputs_small(notebook: Path) -> None:
    document = nbformat.read(notebook, as_version=4)
    longest = max(len(cell.source.splitlines()) for cell in document.cells if cell.cell_type == "code")
    assert longest <= MOST_LINES
    assert notebook.stat().st_size < MOST_BYTES
    assert os.fspath(Path.home()) + "/" not in notebook.read_text()
