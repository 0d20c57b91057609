"""Stores with studies that were won, without searching."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from autotune.hook.recipes.this_device import this_device
from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.provenance.code.frozen import snapshot
from autotune.space.configuration import Configuration
from autotune.space.knobs import Choice, OrderedValues
from autotune.space.space import Space
from autotune.status import Status
from autotune.store.records import NewStudy, NewTrial, Place
from autotune.store.store import Store

SPEEDUP = {"against": "the default", "estimate": 2.0, "low": 1.9, "high": 2.1}
CONSTRAINTS = ["tile <= n"]


def space(workload: dict[str, Any]) -> Space:
    knobs = [OrderedValues("tile", (1, 2, 4, 8, 16), default=1), Choice("layout", ("row", "column"))]
    return Space(knobs, CONSTRAINTS if "n" in workload else [], workload=workload)


def add_study(
    store: Store,
    name: str = "gemm",
    workload: dict[str, Any] | None = None,
    tile: int = 8,
    *,
    device: str = "",
    machine: str = "",
    verdict: bool = True,
    speedup: dict[str, Any] | None = SPEEDUP,
    is_default: bool = False,
    source: Path | None = None,
    packages: dict[str, str] | None = None,
    replayed: bool = False,
    succeeded: bool = True,
) -> str:
    """A study with one trial of ``tile``, and a verdict where it was defended; its label."""
    here = this_device()
    workload = {"n": 1024} if workload is None else workload
    environment = {
        "machine": {"processor": {"name": device or here.processor}},
        "packages": packages or {},
        "gpus": {},
    }
    digest = f"environment-{name}-{device}-{sorted((packages or {}).items())}"
    store.load((), {digest: environment}, ())
    study = store.create_study(
        NewStudy(
            name=name,
            key=f"key {tile} {device} {workload}",
            spec_text="",
            document={"space": space(workload).to_document(), "source": "", "measure": {"gpus": 0}},
            space_hash="space0",
            objective="python gemm.py:Gemm",
            workload=workload,
            metrics=[{"name": "time", "goal": "minimize", "unit": "s"}],
            machine_key=machine or here.machine,
            environment_hash=digest,
            replayed=replayed,
        )
    )
    session = store.open_session(study.id, {}, digest, 4711, "host0")
    frozen = snapshot([source] if source else [])
    segment = store.open_segment(study.id, frozen.to_document(), frozen.artifacts, "the study begins")
    configuration = Configuration({"tile": tile, "layout": "row"})
    reason = {"kind": "default"} if is_default else {}
    [trial] = store.propose(Place(study.id, session, segment.id), [NewTrial(configuration, reason=reason)])
    assert trial is not None
    metrics = {"time": Estimate(0.5, 0.4, 0.6, 3, 0.01)} if succeeded else {}
    status = Status.OK if succeeded else Status.CRASHED
    store.finish(trial.id, Outcome(status, metrics, (Reading("time", 0.5, 0.0),)), digest)
    if verdict and succeeded:
        document = {
            "configuration": dict(configuration),
            "is_default": is_default,
            "metrics": {"time": {"value": 0.5, "low": 0.45, "high": 0.55, "n": 12, "error": 0.01}},
            "speedup": speedup,
        }
        store.save_verdict(study.id, session, document)
    store.close_session(session, "done")
    return study.label
