"""The page of a study, part by part, hostile content included."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import numpy as np

import autotune
from autotune.measure.facts import READY_THREADS
from autotune.report.evidence import load_evidence
from autotune.report.pages.html import html_page
from autotune.report.pages.page import Picture, Table
from autotune.report.pages.study_page import study_page
from autotune.report.spend import spend
from autotune.session.opening.identity import COMMAND
from autotune.space import Choice, IntegerRange, OrderedValues, Space
from autotune.status import Status
from autotune.store.store import Store
from tests.report.pages.reading_html import Read
from tests.report.pages.shown import NOW, both, text_of
from tests.report.studies import KNOBS, Written, generated
from tests.session.families.planted import Planted, family


def test_a_figure_and_its_table_say_the_same_of_a_knob_without_importance(tmp_path: Path) -> None:
    """Of a share just below nothing the table said 0%, and the alternative text of the figure -0%."""
    own = Written(tmp_path, {"size": {"range": [1, 100]}, "on": {"flag": False}})
    rng = np.random.default_rng(79)
    for size in range(1, 31):
        own.trial({"size": size, "on": bool(size % 2)}, 1.0 + 0.1 * float(rng.random()))
    parts = [part for section in study_page(own.store, None, NOW).sections for part in section.parts]
    [shown] = [p for p in parts if isinstance(p, Picture) and p.described.startswith("Importance of 2 knobs")]
    assert shown.table is not None and "-0%" not in shown.described
    assert shown.described.endswith(f"is first with {shown.table.rows[0][1]}")


def test_a_remark_on_an_answer_that_was_not_measured_again_is_said(tmp_path: Path) -> None:
    own = Written(tmp_path)
    own.trial({"tile": 2, "layout": "row"}, 1.0, facts={READY_THREADS: 4, "cores": [0, 1]})
    html, short = both(own.store)
    assert "Trial 0 had 4 threads" in text_of(html) and "Trial 0 had 4 threads" in short


def test_on_how_many_cores_was_measured_at_last_is_said(tmp_path: Path) -> None:
    """Of a Java program on one core of two: by hand, on both, it was another speed-up than the page's."""
    own = Written(tmp_path)
    own.trial({"tile": 1, "layout": "row"}, 2.0, facts={"cores": [0, 1]})
    own.trial({"tile": 2, "layout": "row"}, 1.0, facts={"cores": [1]})
    own.trial({"tile": 4, "layout": "row"}, status=Status.LOST)
    html, short = both(own.store)
    assert "measured on 1 core of the processor, pinned" in text_of(html)
    assert "| measured on | 1 core of the processor, pinned |" in short


def test_a_whole_study_is_said_in_full(tmp_path: Path) -> None:
    with generated(tmp_path) as store:
        html, short = both(store)
    text = text_of(html)
    for said in (
        "faster",
        "What won",
        "How sure that is",
        "How it was found",
        "Which knobs matter",
        "What failed",
    ):
        assert said in text
    assert "How steady the readings were" in text and "Where the time went" in text
    assert "autotune search" in text and "out-of-memory" in text
    assert len(Read(html).of("svg")) >= 7
    assert "**winner**: " in short and "x faster than the default; " in short and "| out\\-of" not in short
    assert len(html) < 1_000_000


def test_why_readings_were_discarded_is_said(tmp_path: Path) -> None:
    own = Written(tmp_path)
    for tile, why in ((1, "throttled"), (2, "throttled"), (4, "waited"), (8, "")):
        own.trial({"tile": tile}, 1.0, readings=[1.0, 1.1, 1.2], discarded=why)
    assert "3 were discarded: throttled (2), waited (1)." in text_of(both(own.store)[0])


def test_how_to_use_what_was_found_is_said(tmp_path: Path) -> None:
    """A reader learned what had won, and had to look elsewhere for how to get at it."""
    own = Written(tmp_path)
    own.trial({"tile": 1, "layout": "row"}, 2.0, reason={"kind": "default"})
    assert "autotune best" not in text_of(both(own.store)[0])  # the default is what they have
    own.trial({"tile": 2, "layout": "row"}, 1.0)
    command = f"autotune best --format yaml --study 'gemm#{own.study.id}' --store {own.store.url}"
    for html, short in (both(own.store),):
        assert f"{command} the best so far as YAML" in text_of(html) and command in short
    own.verdict({"tile": 2, "layout": "row"})
    assert f"{command} the winner as YAML" in text_of(both(own.store)[0])


def test_of_a_program_it_is_said_as_the_answer_says_it(tmp_path: Path) -> None:
    """The page offered YAML where the answer of the search had a command line to paste."""
    command = COMMAND + json.dumps({"arguments": ["./gemm", "--tile={tile}", "--layout={layout}"]})
    own = Written(tmp_path, objective=command)
    own.trial({"tile": 1, "layout": "row"}, 2.0, reason={"kind": "default"})
    own.trial({"tile": 2, "layout": "row"}, 1.0)
    said = text_of(both(own.store)[0])
    assert "autotune best --format command" in said and "the best so far as a command line (or yaml" in said


def test_a_rule_that_nobody_stated_stands_with_the_failures(tmp_path: Path) -> None:
    sizes = {"tile": (16, 32, 48, 64), "lanes": (1, 2, 3, 4), "vector": (1, 2, 3)}
    written = Written(tmp_path, knobs={name: {"values": list(values)} for name, values in sizes.items()})
    for tile, lanes, vector in product(*sizes.values()):
        even = tile % (lanes * vector) == 0
        status = Status.OK if even else Status.CRASHED
        written.trial({"tile": tile, "lanes": lanes, "vector": vector}, 1.0 if even else None, status)
    html, short = both(written.store)
    assert "tile % (lanes * vector) == 0" in text_of(html)
    assert "that failed break it" in short


def test_the_best_trials_are_those_of_the_space_as_it_is_now(tmp_path: Path) -> None:
    """The table had what the space does not contain any more, and `autotune show` had not."""
    own = Written(tmp_path)
    for tile in (1, 2, 4):
        own.trial({"tile": tile, "layout": "row"}, 1.0 / tile)
    space = Space(
        [OrderedValues("tile", (1, 2), default=1), Choice("layout", ("row", "column"), default="row")]
    )
    own.store.update_space(own.study.id, "changed", {"space": space.to_document()}, "another")
    table = next(
        part for part in study_page(own.store, None, NOW).sections[-1].parts if isinstance(part, Table)
    )
    assert [row[0] for row in table.rows] == ["1", "0"] and table.caption == "The best 2"


def test_a_default_that_no_other_winner_beats_is_not_said_to_beat_nothing(tmp_path: Path) -> None:
    """Of a workload that was held out: ``of 0 configurations none was shown to be better``."""
    own = Written(tmp_path)
    again = {"kind": "re-measurement", "label": "the default"}
    own.trial({"tile": 1}, 2.0, purpose="default", reason=again)
    own.verdict({"tile": 1}, is_default=True, label="the default")
    html, short = both(own.store)
    assert "no winner of another workload was shown to be better" in short
    assert "the default default 2" in text_of(html) and "the default winner" not in text_of(html)


def test_of_a_long_output_the_end_is_shown(tmp_path: Path) -> None:
    """Of a traceback in Markdown the beginning was shown, without the error that it ends with."""
    own = Written(tmp_path)
    output = "first line\n" + "a call\n" * 5000 + "ValueError: the cause"
    own.trial({"tile": 1}, status=Status.CRASHED, message="it crashed", stderr=output)
    for shown in both(own.store):
        assert "a call\nValueError: the cause" in shown and "first line" not in shown
        assert len(re.findall("characters before this are left out", shown)) == 1


def test_a_study_from_python_names_no_command_that_could_not_work(tmp_path: Path) -> None:
    space = Space([IntegerRange("x", 1, 9, default=3)], [])
    study = autotune.StudySpec("by-hand", space, search=autotune.SearchSettings("random"))
    with autotune.ask_tell(study, store=tmp_path / "study.db") as session:
        for trial in session.ask(2):
            session.tell(trial, time=trial.configuration["x"])
    with Store.open(tmp_path / "study.db") as store:
        html, short = both(store)
    for said in (text_of(html), short):
        assert "autotune search" not in said and "autotune verify" not in said
        assert "was searched from Python: only the program that did so can measure it" in said
        assert "given by a program" in said and "autotune derive" in said


def test_each_search_of_a_study_is_told_by_its_strategy(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.trial({"tile": 1}, 1.0)
    settings = {"search": {"strategy": "bayes", "seed": 4}}
    written.session = written.store.open_session(written.study.id, settings, "", 1, "host0")
    written.trial({"tile": 2}, 2.0)
    html, short = both(written.store)
    said = "Strategies random (seed 0), bayes (seed 4) proposed, in 2 sessions: 2 ok."
    assert said in text_of(html) and "strategy random, bayes" in short


def test_of_random_draws_that_all_failed_no_number_is_said(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.trial({"tile": 1, "layout": "row"}, 1.0, reason={"kind": "default"})
    for tile in range(2, 30):
        written.trial({"tile": tile, "layout": "row"}, None, Status.CRASHED)
    said = text_of(both(written.store)[0])
    assert "No random draw was as good" in said and "the 28 trials of this study" in said
    assert "nan" not in said.split()


def test_of_many_workloads_the_search_is_told_and_not_what_was_measured_after_it(tmp_path: Path) -> None:
    workloads = family(tmp_path, "[{m: 64}, {m: 16}, {m: 32, held_out: true}]", 12, 2, "bayes")
    autotune.search_many(workloads, store=tmp_path / "s.db", objective=Planted)
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        searched, _, held_out = [study_page(store, study.id, 0.0) for study in store.studies()]
        spent = spend(load_evidence(store, store.studies()[0].id))
    assert dict(searched.facts)["strategy"] == "bayes"
    assert dict(searched.facts)["workload"] == "kind plain, m 64"
    text = text_of(html_page(searched))
    assert "Strategy bayes (seed 1) proposed, once:" in text
    assert "It ended by: measured again" not in text
    assert "strategy" not in dict(held_out.facts)
    assert "Nothing was searched for this workload" in text_of(html_page(held_out))
    assert "finale" in spent["part"].tolist()


def test_of_many_workloads_the_command_has_the_budget_of_all(tmp_path: Path) -> None:
    document = {"space": {"knobs": dict(KNOBS)}, "source": "/somewhere/space.yaml", "budget": {"trials": 120}}
    written = Written(tmp_path, document=document)
    written.trial({"tile": 1}, 1.0)
    assert "--seed 0 --trials 50 --fresh" in text_of(both(written.store)[0])
    part = {"search": {"strategy": "random"}, "budget": {"trials": 40}, "part": True}
    written.session = written.store.open_session(written.study.id, part, "", 1, "host0")
    text = text_of(both(written.store)[0])
    assert "--seed 0 --trials 120 --fresh" in text


EVIL = "<script>alert(1)</script>"
KNOB = f'"><img src=x onerror=alert(1)>{EVIL}\x1b[2J\u202egnp$x^2$'


def hostile(folder: Path) -> Written:
    written = Written(
        folder,
        {KNOB: {"choices": [EVIL, "b"], "default": "b"}, "n": {"range": [0, 10**400], "default": 1}},
        name=EVIL,
        objective=f"python {EVIL}",
        workload={EVIL: EVIL},
        spec_text=f"]]></pre>{EVIL}\x00\x07",
        metrics=[{"name": "time", "goal": "minimize", "unit": EVIL, "at_most": None, "at_least": None}],
    )
    written.trial({KNOB: "b", "n": 10**400}, 2.0, reason={"kind": EVIL, "strategy": EVIL})
    written.trial({KNOB: EVIL, "n": 3}, 1.0, readings=[1.0, float("nan")])
    for n in range(30):
        written.trial({KNOB: "b" if n % 3 else EVIL, "n": 10**n}, 1.0 + n)
    stderr = f"{EVIL}\x1b]0;owned\x07" + "x" * 10_000_000
    written.trial({KNOB: "b", "n": 4}, status=Status.CRASHED, message=f"`{EVIL}`|\n# no\u2066", stderr=stderr)
    return written


def test_hostile_content_is_shown_and_does_nothing(tmp_path: Path) -> None:
    html, short = both(hostile(tmp_path).store)
    assert EVIL in text_of(html)
    assert len(html) < 2_000_000
    assert "characters before this are left out" in html
    acting = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
    assert not acting.search(html) and not acting.search(short)
    outside = re.sub(r"(?ms)^(`{3,})\w*$.*?^\1$", "", short)
    assert "<script" not in outside and "<img" not in outside
    assert "](javascript" not in short


def test_a_figure_does_not_take_a_dollar_for_a_formula(tmp_path: Path) -> None:
    assert "$x^2$" in both(hostile(tmp_path).store)[0]


def test_what_won_is_said_whole_and_whether_it_changed(tmp_path: Path) -> None:
    """An order of many items had been cut, and passed for unchanged where it differed beyond the cut."""
    blocks = [f"block{place}" for place in range(40)]
    moved = [*blocks[:38], "block39", "block38"]
    written = Written(tmp_path, {"order": {"permutation": blocks, "default": blocks}})
    written.trial({"order": blocks}, 2.0, reason={"kind": "default"})
    written.trial({"order": moved}, 1.0)
    html, short = both(written.store)
    row = next(line for line in short.splitlines() if line.startswith("| order |"))
    assert row.endswith("| changed |")
    assert f"order {', '.join(moved)} {', '.join(blocks)} changed" in text_of(html)


def test_a_winner_that_is_near_the_default_is_told_from_it(tmp_path: Path) -> None:
    written = Written(tmp_path, {"lr": {"range": [1e-5, 1.0], "scale": "log", "default": 0.1}})
    written.trial({"lr": 0.1}, 2.0, reason={"kind": "default"})
    written.trial({"lr": 0.10000412}, 1.0)
    assert "lr 0.10000412 0.1 changed" in text_of(both(written.store)[0])


def test_a_command_is_shown_blank_for_blank(tmp_path: Path) -> None:
    folder = tmp_path / "two  blanks" / ("long" * 45) / ("long" * 40)  # SQLite takes paths of 512 bytes
    folder.mkdir(parents=True)
    written = Written(folder)
    written.trial({"tile": 1, "layout": "row"}, 1.0)
    html, short = both(written.store)
    command = f"autotune derive --study 'gemm#1' --store 'sqlite:///{folder}/written.db'"
    assert command in "".join(Read(html).texts) and f"{command}  # " in short


def test_each_column_of_a_table_has_a_name(tmp_path: Path) -> None:
    with generated(tmp_path) as store:
        page = study_page(store, None, NOW)
    tables = [part for section in page.sections for part in section.parts if isinstance(part, Table)]
    tables += [
        part.table
        for section in page.sections
        for part in section.parts
        if isinstance(part, Picture) and part.table
    ]
    assert len(tables) > 5 and all(heading for table in tables for heading in table.headings)


def test_a_study_whose_trials_were_stopped_early_has_a_page(tmp_path: Path) -> None:
    document = {"space": {"knobs": KNOBS}, "search": {"early_stopping": {"policy": "asha", "max": 9}}}
    written = Written(tmp_path, document=document)
    written.trial({"tile": 1}, 2.0, reason={"kind": "default"})
    written.trial({"tile": 2}, 3.0, Status.PRUNED, facts={"step": 3, "steps": 9})
    html, _ = both(written.store)
    assert "pruned" in text_of(html)
