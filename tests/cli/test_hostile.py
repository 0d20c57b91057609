"""What others have written does nothing to a terminal, whichever verb shows it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from autotune.cli.check import command as check
from autotune.cli.derive import command as derive
from autotune.cli.diff import command as diff
from autotune.cli.importance import command as importance
from autotune.cli.lineage import command as lineage
from autotune.cli.show import command as show
from autotune.cli.spend import command as spend
from autotune.cli.trial import command as trial
from autotune.cli.why import command as why
from autotune.measure.outcome import Outcome
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.records import NewTrial, Place
from autotune.store.store import Store
from tests.cli.calling import call
from tests.store.build import new_study, outcome

EVIL = "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>\u202egnp\x9b31m\r\b\x00"
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A study whose name, knobs, values, messages, reasons and outputs would all act on a terminal."""
    file = tmp_path / "evil.db"
    with Store.open(file) as opened:
        document: dict[str, Any] = {"space": {"knobs": {EVIL: {}}}, "identity": {}}
        study = opened.create_study(
            new_study(EVIL, document=document, workload={EVIL: EVIL}, objective=EVIL, spec_text=EVIL)
        )
        session = opened.open_session(study.id, {}, "environment0", 1, EVIL)
        opened.load((), {"environment0": {"machine": {"processor": {"name": EVIL}}, EVIL: EVIL}}, ())
        segment = opened.open_segment(study.id, {"source_hash": EVIL}, {}, EVIL)
        for place in range(3):
            new = NewTrial(
                Configuration({EVIL: f"{EVIL}{place}"}), "search", EVIL, {"kind": EVIL, "strategy": EVIL}
            )
            [made] = opened.propose(Place(study.id, session, segment.id), [new])
            assert made is not None
            came: Outcome = (
                outcome() if place else outcome(Status.CRASHED, message=EVIL, stderr=EVIL * 400_000)
            )
            opened.finish(made.id, came, "environment0")
        opened.save_verdict(
            study.id,
            session,
            {
                "configuration": {EVIL: f"{EVIL}1"},
                "label": EVIL,
                "remark": EVIL,
                "is_default": False,
                "metrics": {},
            },
        )
    return file


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        (show, ()),
        (show, ("--study", "#1", "--failures")),
        (trial, (1,)),
        (trial, (2,)),
        (why, (1,)),
        (why, (2,)),
        (lineage, ("#1",)),
        (lineage, (2,)),
        (diff, (1, 2)),
        (diff, (2, 3)),
        (spend, ()),
        (importance, ()),
    ],
    ids=lambda value: getattr(value, "name", " ".join(map(str, value)) if isinstance(value, tuple) else ""),
)
def test_nothing_acts_on_a_terminal(store: Path, verb: Any, arguments: tuple[object, ...]) -> None:
    done = call(verb, *arguments, "--store", store)
    assert done.exception is None, done.exception
    assert not ACTING.search(done.stdout)
    assert len(done.stdout) < 100_000  # ten megabytes of output are not shown
    told = call(verb, *arguments, "--store", store, "--json")
    assert not ACTING.search(told.stdout)


def test_nor_does_a_rule_of_a_space_file(tmp_path: Path) -> None:
    space = tmp_path / "space.yaml"
    space.write_text(
        "autotune: 1\nname: evil\ncommand: [echo]\n"
        'knobs: {a: {choices: ["\\e[31m", b]}, b: {flag: true}}\nconstraints: ["a != \'\\e[31m\' or b"]\n'
    )
    done = call(check, space, "--store", tmp_path / "none.db")
    assert done.exception is None, done.exception
    assert r"a != '\x1b[31m' or b" in done.stdout and not ACTING.search(done.stdout)


def test_nor_does_what_an_error_says(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from autotune.cli.main import main

    with pytest.raises(SystemExit) as ended:
        main(["show", "--study", EVIL.replace("\x00", "") + "?", "--store", str(store)])
    assert ended.value.code == 2
    assert not ACTING.search(capsys.readouterr().err)
    assert call(derive, "--store", store).exception is not None
