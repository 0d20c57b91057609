"""Reports of studies of every kind, hostile ones included."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import autotune
from autotune.measure.outcome import READY_THREADS
from autotune.report.evidence import load_evidence
from autotune.report.pages.html import html_page
from autotune.report.pages.markdown import markdown
from autotune.report.pages.page import Picture, Table
from autotune.report.pages.study_page import study_page
from autotune.report.spend import spend
from autotune.space import Choice, IntegerRange, OrderedValues, Space
from autotune.status import Status
from autotune.store.store import Store
from tests.report.pages.reading_html import Read, faults
from tests.report.studies import KNOBS, Written, generated
from tests.session.families.planted import Planted, family
from tests.store.build import new_study

NOW = 1_700_001_000.0
GOALS = [
    {"name": "time", "goal": "minimize", "unit": "s", "at_most": None, "at_least": None},
    {"name": "rate", "goal": "maximize", "unit": "", "at_most": None, "at_least": None},
]


def both(store: Store) -> tuple[str, str]:
    """The page as HTML without a fault, and as Markdown."""
    page = study_page(store, None, NOW)
    html = html_page(page)
    assert faults(html) == []
    return html, markdown(page)


def text_of(html: str) -> str:
    return " ".join(Read(html).text.split())


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


def empty(folder: Path) -> Written:
    return Written(folder)


def only_failures(folder: Path) -> Written:
    written = Written(folder)
    for tile in (1, 2, 4):
        written.trial(
            {"tile": tile}, status=Status.CRASHED, message="it crashed", stderr="segmentation fault"
        )
    return written


def one_trial(folder: Path) -> Written:
    written = Written(folder)
    written.trial({"tile": 1}, 2.0, readings=[2.0, 2.1], reason={"kind": "default"})
    return written


def no_default(folder: Path) -> Written:
    written = Written(folder)
    for tile in (2, 4):
        written.trial({"tile": tile}, 1.0 / tile)
    written.trial({"tile": 4}, 0.25, purpose="final", reason={"kind": "re-measurement", "label": "trial 1"})
    written.verdict(
        {"tile": 4}, speedup=None, remark="the default is not feasible: there is nothing to compare with"
    )
    return written


def nobody_stood(folder: Path) -> Written:
    written = one_trial(folder)
    written.trial({"tile": 2}, 1.0)
    again = {"kind": "re-measurement", "label": "trial 1"}
    written.trial({"tile": 2}, status=Status.CRASHED, message="no room", purpose="final", reason=again)
    written.no_verdict({"trial 1": ["crashed", "no room"]})
    return written


def no_better(folder: Path) -> Written:
    written = one_trial(folder)
    written.trial({"tile": 2}, 2.0)
    written.trial(
        {"tile": 1}, 2.0, purpose="default", reason={"kind": "re-measurement", "label": "the default"}
    )
    written.verdict({"tile": 1}, is_default=True, label="the default")
    return written


def two_goals(folder: Path) -> Written:
    written = Written(folder, metrics=GOALS)
    for tile in (1, 2, 4, 8):
        written.trial({"tile": tile}, metrics={"time": 1.0 / tile, "rate": 10.0 - tile})
    return written


def replayed(folder: Path) -> Written:
    written = Written(folder, replayed=True)
    for tile in (1, 2):
        written.trial({"tile": tile}, 1.0 / tile)
    return written


def running(folder: Path) -> Written:
    written = one_trial(folder)
    written.begin({"tile": 16})
    return written


def only_default(folder: Path) -> Written:
    written = one_trial(folder)
    written.trial({"tile": 2}, status=Status.CRASHED, message="no room")
    return written


def others_pruned(folder: Path) -> Written:
    written = one_trial(folder)
    written.trial({"tile": 2}, 9.0, Status.PRUNED, message="worse than the best so far beyond doubt")
    return written


def others_pruned_or_failed(folder: Path) -> Written:
    written = others_pruned(folder)
    written.trial({"tile": 4}, status=Status.CRASHED, message="no room")
    return written


def stopped_early(folder: Path) -> Written:
    early = {"early_stopping": {"policy": "asha", "max": 9}}
    document = {"space": {"knobs": dict(KNOBS)}, "source": "/somewhere/space.yaml", "search": early}
    written = Written(folder, document=document)
    for tile, step in ((1, 9), (2, 3), (4, 9), (8, 1)):
        status = Status.OK if step == 9 else Status.PRUNED
        curve = [[at, 1.0 / at] for at in (1, 3, 9) if at <= step]
        written.trial({"tile": tile}, 1.0 / step, status, facts={"step": step, "steps": 9, "curve": curve})
    return written


def endless(folder: Path) -> Written:
    written = Written(folder)
    for tile in (1, 2, 4):
        written.trial(
            {"tile": tile}, float("nan") if tile == 1 else 1e300 * tile, readings=[1e300, float("inf")]
        )
    return written


def outlier(folder: Path) -> Written:
    """On a logarithmic axis nine tenths of it are one value, which is no range."""
    written = Written(folder)
    for n in range(12):
        written.trial({"tile": 2**n}, 50.0 if n == 4 else 1.0)
    return written


def zeros(folder: Path) -> Written:
    written = Written(folder)
    for tile in (1, 2, 4, 8):
        written.trial({"tile": tile}, 0.0, readings=[0.0, 0.0, 0.0])
    return written


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (empty, "Nothing tried"),
        (only_failures, "Nothing succeeded"),
        (one_trial, "no better than the default The default stays nothing else was tried"),
        (one_trial, "2 readings of 1 trial are shown."),
        (one_trial, "the 1 outcome of this study, since only 0 were drawn at random"),
        (only_default, "no better than the default The default stays nothing else succeeded"),
        (others_pruned, "no better than the default The default stays all others were pruned"),
        (others_pruned_or_failed, "The default stays all others failed or were pruned"),
        (no_default, "the default is not feasible"),
        (no_better, "The default stays"),
        (two_goals, "beaten by no other in time and rate"),
        (replayed, "REPLAYED from a recording"),
        (stopped_early, "not measured again"),
        (running, "A search is running, with 1 trial in flight."),
        (endless, "4e+300 s"),
        (zeros, "every trial's median is 0"),
        (zeros, "expected to need 1 try to find one as good"),
        (outlier, "best so far time 1 s"),
    ],
)
def test_each_kind_of_study_has_its_sentence(
    tmp_path: Path, make: Callable[[Path], Written], said: str
) -> None:
    html, short = both(make(tmp_path).store)
    assert said in text_of(html)
    assert short.startswith("## gemm")


def test_who_failed_in_the_finale_is_named_and_not_said_to_be_still_to_measure(tmp_path: Path) -> None:
    html, short = both(nobody_stood(tmp_path).store)
    text = text_of(html)
    assert "not measured again" not in text and "No trial failed" not in text
    said = "no finalist could be measured again: trial 1 ended as crashed (no room)"
    assert said in text and said in short
    assert "No trial of the search failed. Failed when measured again" in text
    assert re.search(r"trial 1 crashed 2 no room", text)


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


def test_a_search_whose_process_is_gone_is_not_said_to_be_at_it(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.trial({"tile": 1}, 1.0)
    written.search_that_died()
    written.begin({"tile": 2})
    text = text_of(both(written.store)[0])
    assert "A search is running" not in text
    assert "The search was interrupted and its process is gone; not finished: 1 trial." in text


def test_where_only_the_default_succeeded_no_finale_is_missed(tmp_path: Path) -> None:
    html, short = both(only_default(tmp_path).store)
    assert "not measured again" not in text_of(html)
    assert "not measured again" not in short and "best so far" not in short
    (tmp_path / "running").mkdir()
    written = only_default(tmp_path / "running")
    written.begin({"tile": 4})
    assert "best so far" in both(written.store)[1]


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


def test_a_replay_shows_no_time_of_a_device(tmp_path: Path) -> None:
    text = text_of(both(replayed(tmp_path).store)[0])
    assert "Where the time went" not in text and "How steady" not in text and "autotune verify" not in text
    with Store.open(tmp_path / "named.db") as store:
        environment = {"machine": {"processor": {"name": "A processor"}}}
        store.load((), {"environment0": environment}, ())
        for name, there in (("measured", True), ("replayed", False)):
            study = store.create_study(new_study(name, replayed=name == "replayed"))
            assert ("machine" in dict(study_page(store, study.id, NOW).facts)) == there


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
