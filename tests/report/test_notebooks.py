"""Every notebook runs from top to bottom, headless, on the recorded studies."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    execute(document, notebook.parent)
    return outputs_of(document)


ANEW = """
%reset -f
import sys
for name in [name for name in sys.modules if name.partition(".")[0] == "autotune"]:
    del sys.modules[name]
%reset -f
"""
"""What a kernel is left by: no names, and nothing of ours that one notebook has imported for the next."""


def run_all() -> dict[str, list[dict[str, object]]]:
    """The outputs of each notebook by its name, all run in one kernel, whose start and imports take long."""
    documents = {notebook.stem: nbformat.read(notebook, as_version=4) for notebook in NOTEBOOKS}
    cells = []
    for document in documents.values():
        cells += [nbformat.v4.new_code_cell(ANEW), *document.cells]
    for number, cell in enumerate(cells):
        cell.id = str(number)  # each notebook counts its own
    execute(nbformat.v4.new_notebook(cells=cells), RESULTS)
    return {name: outputs_of(document) for name, document in documents.items()}


def execute(document: Any, folder: Path) -> None:
    """Run all cells, in a kernel of their own; they keep their outputs."""
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(document, timeout=120, kernel_name="python3", resources=resources).execute()


def outputs_of(document: Any) -> list[dict[str, object]]:
    return [output for cell in document.cells if cell.cell_type == "code" for output in cell.outputs]


def test_there_are_notebooks() -> None:
    names = {path.name for path in NOTEBOOKS}
    assert names >= {"dashboard.ipynb", "study.ipynb", "compare.ipynb", "provenance.ipynb"}


def test_they_run_from_top_to_bottom(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AUTOTUNE_STORE", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    for notebook, outputs in run_all().items():
        assert not [o for o in outputs if o["output_type"] == "error"], notebook
        drawn = sum("image/png" in o.get("data", {}) for o in outputs)  # type: ignore[operator]
        assert drawn >= (notebook != "provenance"), notebook


@pytest.mark.long
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
        here: set[str] = set()
        with Store.open(notebook_store(), readonly=True) as store:
            wanted = store.studies()
            for study in reversed(wanted):  # a later archive brings the earlier studies that it learned from
                if study.key not in here:
                    write_archive(store, study, folder / f"{study.id:03}.zip")
                    import_archive(folder / f"{study.id:03}.zip", url)
                    with Store.open(url, readonly=True) as remote:
                        here = {one.key for one in remote.studies()}
        assert here == {study.key for study in wanted}
        yield url


@pytest.mark.long
def test_they_run_over_a_store_on_a_server(
    remote: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AUTOTUNE_STORE", remote)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    for notebook, outputs in run_all().items():
        assert not [o for o in outputs if o["output_type"] == "error"], notebook
        said = json.dumps(outputs, default=str)
        assert any(name in said for name in ("gemm-c", "stencil-c", "digits-mlp", "digits-front")), notebook


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_cells_are_short_and_its_outputs_small(notebook: Path) -> None:
    document = nbformat.read(notebook, as_version=4)
    longest = max(len(cell.source.splitlines()) for cell in document.cells if cell.cell_type == "code")
    assert longest <= MOST_LINES
    assert notebook.stat().st_size < MOST_BYTES
    assert os.fspath(Path.home()) + "/" not in notebook.read_text()
