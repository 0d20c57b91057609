"""A store with all that a trial can have, its archive, and ways to alter that."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autotune.interop.archives.format import MANIFEST, encode
from autotune.interop.archives.writing import write_archive, write_down
from autotune.measure.outcome import Estimate, Reading, Report
from autotune.status import Status
from autotune.store.documents import content_hash
from autotune.store.records import NewAsk
from autotune.store.store import Store
from tests.hook.stores import add_study
from tests.store.build import bench, new_trial, outcome

ODD = "a \x1b[31mred\x07 <script>alert(1)</script> \u202e \N{SNOWMAN} text"


def make_origin(tmp_path: Path) -> Path:
    """A store of two studies, one of which learned from the other, with all that a trial can have."""
    file = tmp_path / "origin.db"
    with Store.open(file) as store:
        add_study(store, tile=8)
        own = bench(store, "odd")
        first = own.trial(1)
        odd = (
            Reading("time", math.nan, 0.5, "throttled", {"sm_clock_mhz": 1980.0}),
            Reading("time", math.inf, 1.5),
            Reading("time", 0.1 + 0.2, 2.5, "", {"cpu": 1e-300}),
        )
        metrics = {"time": Estimate(0.1 + 0.2, 0.0, math.inf, 1, 0.0)}
        artifacts = {"compiler output": bytes(range(256)), "source": b"int main;"}
        store.finish(first.id, outcome(metrics=metrics, readings=odd, artifacts=artifacts), "environment1")
        running = own.trial(2)
        store.report(running.id, [Report(1, {"loss": 0.5}, 0.1), Report(2, {"loss": math.nan}, 0.2)])
        store.pause(running.id, 2, outcome(Status.PRUNED, metrics=metrics, facts={"step": 2}))
        store.finish(own.trial(4).id, outcome(Status.CRASHED, message=ODD, stderr=ODD * 100))
        store.finish(own.trial(8, "final").id, outcome(value=0.25))
        store.propose(own.place, [new_trial(16)], ask=NewAsk(0, 1, 3, 2))
        store.load((), {"environment1": {"machine": {"processor": {"name": ODD}}, "odd": -math.inf}}, ())
        store.update_space(own.study.id, "new text", {"space": {"knobs": {}}, "identity": {}}, "space1")
        settings = {"sources": [{"study": 1, "trials": 1}, {"study": 77, "trials": 3}]}
        later = store.open_session(own.study.id, settings, "environment0", 1, "host")
        store.save_verdict(own.study.id, later, {"configuration": {"tile": 1}, "label": "trial 0"})
        store.close_session(later, "done")
    return file


def write(origin: Path, file: Path, study: str = "odd") -> Path:
    with Store.open(origin, readonly=True) as store:
        written = write_archive(store, store.study(study), file)
    write_down(str(origin), written.manifest)
    return file


Members = dict[str, bytes]


def members_of(file: Path) -> Members:
    with zipfile.ZipFile(file) as opened:
        return {info.filename: opened.read(info) for info in opened.infolist()}


def put(file: Path, members: Members) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return file


TRIALS, READINGS = "studies/1/trials.jsonl", "studies/1/readings.jsonl"


def edited(members: Members, name: str, line: int, change: Callable[[Any], None]) -> None:
    lines = members[name].splitlines()
    row = json.loads(lines[line])
    change(row)
    lines[line] = encode(row).encode()
    members[name] = b"\n".join(lines) + b"\n"


def hashed_again(members: Members) -> Members:
    """As whoever alters an archive and knows how would do it."""
    manifest = json.loads(members[MANIFEST])
    manifest["members"] = {
        name: {"bytes": len(content), "sha256": content_hash(content)}
        for name, content in members.items()
        if name != MANIFEST
    }
    return {**members, MANIFEST: (encode(manifest) + "\n").encode()}
