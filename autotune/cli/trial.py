"""``autotune trial``: everything known about one trial."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from autotune.cli.options import echo, json_option, print_json, store_option, study_option
from autotune.cli.references import find_trial

MOST_SHOWN = 40
"""The most readings of a metric that are shown."""

MOST_OF_A_FACT = 160
"""The most characters of a fact that are shown; ``--json`` has all."""

MOST_OF_A_COMMAND = 1 << 17
"""The most characters of a command line that are shown: as many as Linux takes in one argument."""

if TYPE_CHECKING:
    from autotune.store.records import StudyRecord, TrialRecord
    from autotune.store.store import Store


@click.command("trial")
@click.argument("word", metavar="TRIAL")
@study_option("Then TRIAL is the trial's number in this study.")
@store_option
@json_option
def command(word: str, study: str | None, store: str | None, as_json: bool) -> int:
    """Show everything known about one trial: outcome, every reading, why it was tried, on what machine.

    TRIAL is the trial's id, STUDY:NUMBER, or its number with --study.
    """
    from autotune.store.store import Store

    with Store.open(store, readonly=True) as opened:
        trial = find_trial(opened, word, study)
        document, itself = describe(opened, trial), opened.study(trial.study_id)
    if as_json:
        print_json(document)
    else:
        echo(say(document, itself))
        if word.isdigit() and not study and int(word) != trial.number:
            echo(f"note: {word} is its id in the store. Its study's trial {word} is {itself.label}:{word}")
    return 0


def describe(store: Store, trial: TrialRecord) -> dict[str, Any]:
    """The trial, its readings, its study, segment, session and environment, as JSON."""
    from autotune.cli.by_hand import by_hand
    from autotune.report.words.story import reasons_of, results_known
    from autotune.session.result import estimate_document
    from autotune.space.configuration import plain

    study = store.study(trial.study_id)
    reasons, given = reasons_of(store, study, trial), by_hand(study, trial.configuration)
    document = asdict(trial)
    document |= {
        "configuration": plain(trial.configuration),
        "commands": given.commands,
        "config": {"file": given.config_file, "text": given.config_text} if given.config_file else None,
        "uses_folder": given.uses_folder,
        "status": str(trial.status),
        "study": study.name,
        "results_known": results_known(store, trial) if trial.purpose == "search" else None,
        "because": list(reasons.because),
        "expectations": [{**asdict(one), "said": one.say()} for one in reasons.expected],
        "replayed": study.replayed,
        "units": {metric["name"]: metric["unit"] for metric in study.metrics},
        "metrics": {name: estimate_document(e) for name, e in trial.metrics.items()},
        "readings": [asdict(reading) for reading in store.readings(trial.id)],
        "reports": [asdict(record.report) for record in store.reports_of(trial.id)],
        "segment": asdict(store.segment(trial.segment_id)),
        "environment": store.environment(trial.environment_hash) if trial.environment_hash else None,
    }
    return document


def say(document: dict[str, Any], study: StudyRecord) -> str:
    from autotune.report.text import last_lines, visible

    label = "  (REPLAYED from a recording)" if document["replayed"] else ""
    lines = [
        f"trial {document['number']} of {document['study']}#{document['study_id']}"
        f" (id {document['id']}): {document['status']}{label}"
    ]
    if document["message"]:
        lines.append(f"  why      {visible(document['message'].strip())}")
    lines += _reason(document)
    lines += _knobs(document["configuration"], study)
    lines += _by_hand(document)
    lines += _metrics(document)
    lines += [f"  phase    {name} {seconds:.3f} s" for name, seconds in document["phases"].items()]
    lines += _readings(document["readings"], document["units"]) + _curve(document["reports"])
    lines += _facts(document["facts"])
    worker = f"worker {document['worker']}, " if document["worker"] else ""  # a finale has many
    lines.append(f"  where    {worker}environment {document['environment_hash'] or '?'}")
    lines += _machine(document["environment"] or {}) + _device(document["readings"])
    segment = document["segment"]["document"]
    lines.append(f"  code     source {segment.get('source_hash', '?')}, commit {_commit(segment)}")
    if document["stderr"].strip():
        ending = last_lines(document["stderr"].strip()).splitlines()[-10:]
        lines += ["  printed", *(f"    {line}" for line in ending)]
    return "\n".join(lines)


def _one(text: object) -> str:
    from autotune.report.text import one_line

    return one_line(text)


def _knobs(configuration: Mapping[str, Any], study: StudyRecord) -> list[str]:
    from autotune.report.words.summary import say_knob, worth_saying

    named, more = worth_saying(configuration, study)
    lines = [f"  knob     {_one(name)} = {_one(say_knob(value))}" for name, value in named.items()]
    return [*lines, *(f"           {text} (--json has them)" for text in more)]


def _by_hand(document: Mapping[str, Any]) -> list[str]:
    """The config file and the command lines."""
    from autotune.report.text import visible

    lines = []
    if config := document["config"]:
        text = visible(config["text"], MOST_OF_A_COMMAND).splitlines()
        lines = [f"  config   {visible(config['file'])}", *(f"    {line}" for line in text)]
    lines += [
        f"  {part:8} {visible(shlex.join(words), MOST_OF_A_COMMAND)}"
        for part, words in document["commands"].items()
    ]
    own = "           (folder, or {folder}, is the configuration's own, which is gone: mkdir folder)"
    return [*lines, own] if document["uses_folder"] else lines


def _metrics(document: dict[str, Any]) -> list[str]:
    from autotune.report.numbers import say_count, say_gain, say_value

    lines = []
    for name, m in document["metrics"].items():
        unit, apart = document["units"].get(name, ""), m["low"] < m["high"]
        known = say_gain(m["value"], m["low"], m["high"], unit) if apart else say_value(m["value"], unit)
        shared = document["facts"].get("shared_error", {}).get(name)
        which = "which may all be" if m["n"] > 1 else "which may be"
        together = f", {which} off by {100 * shared:.2g} %" if shared else ""
        lines.append(f"  metric   {_one(name)} = {known}, {say_count(m['n'], 'reading')}{together}")
    return lines


def _readings(readings: list[dict[str, Any]], units: Mapping[str, str]) -> list[str]:
    lines = []
    for name in dict.fromkeys(r["metric"] for r in readings):
        unit = f" ({_one(units[name])})" if units.get(name) else ""
        own = [r for r in readings if r["metric"] == name]
        if len(own) > 2 and len({r["value"] for r in own}) == 1:
            lines.append(f"  readings {_one(name)}{unit} = {own[0]['value']:.6g}, each of {len(own)}")
            continue
        shown = " ".join(f"{r['value']:.6g}{'*' if r['discarded'] else ''}" for r in own[:MOST_SHOWN])
        more = f" ... {len(own)} in all (--json has them)" if len(own) > MOST_SHOWN else ""
        lines.append(f"  readings {_one(name)}{unit} = {shown}{more}")
    why = dict.fromkeys(_one(r["discarded"]) for r in readings if r["discarded"])
    return [*lines, *([f"           * does not count: {', '.join(why)}"] if why else [])]


def _machine(environment: dict[str, Any]) -> list[str]:
    """The GPUs, then the processor."""
    devices = environment.get("gpus", {}).get("devices", ())
    processor = environment.get("machine", {}).get("processor", {}).get("name")
    names = [*dict.fromkeys(device.get("name") for device in devices), processor]
    return [f"           {_one(name)}" for name in names if name]


def _device(readings: list[dict[str, Any]]) -> list[str]:
    """The clock, power and temperature of the GPU during the readings that count, if they were sampled."""
    from autotune.measure.gpu.conditions import reasons_in

    own = [r["context"] for r in readings if not r["discarded"] and "sm_clock_mhz" in r["context"]]
    if not own:
        return []
    said = []
    for name, unit in (("sm_clock_mhz", "MHz"), ("power_watts", "W"), ("temperature_c", "°C")):
        if values := [context[name] for context in own if name in context]:
            low, high = f"{min(values):.0f}", f"{max(values):.0f}"
            said.append(f"{low} {unit}" if low == high else f"{low} to {high} {unit}")
    masks = [int(context.get("throttle_reasons", 0)) for context in own]
    slowed = dict.fromkeys(reason for mask in masks for reason in reasons_in(mask))
    return [f"  device   {', '.join(said)}" + (f"; slowed by {', '.join(slowed)}" if slowed else "")]


def _curve(reports: list[dict[str, Any]]) -> list[str]:
    """The reported values of each metric by step: about a dozen, with the first and the last."""
    every = max(1, -(-(len(reports) - 1) // 12))
    shown = [r for place, r in enumerate(reports) if place % every == 0 or r is reports[-1]]
    names = dict.fromkeys(name for r in shown for name in r["metrics"])
    return [
        f"  curve    {name} "
        + " ".join(f"{r['step']}:{r['metrics'][name]:.4g}" for r in shown if name in r["metrics"])
        for name in names
    ]


def _reason(document: dict[str, Any]) -> list[str]:
    """Why it was tried, what was known then, and what was predicted."""
    from autotune.report.numbers import say_count

    said = [*document["because"]]
    if document["results_known"]:
        known = say_count(document["results_known"], "result")
        said.append(f"asked after {known}, search {document['session_id']}")
    lines = [f"  {'' if place else 'because':8} {text}" for place, text in enumerate(said)]
    return lines + [f"  expected {expected['said']}" for expected in document["expectations"]]


def _commit(segment: dict[str, Any]) -> str:
    from autotune.provenance.document import part_of

    head = part_of(segment, "repository", "head")
    problem = segment.get("problem")
    return str(head.get("commit") or (f"none ({problem})" if problem else "none"))


def _facts(facts: dict[str, Any]) -> list[str]:
    """The trial's facts beside its metrics, without those that other lines show."""
    from autotune.measure.facts import CURVE, TIMELINE
    from autotune.report.text import one_line, shown

    said = {name: value for name, value in facts.items() if name not in (TIMELINE, CURVE, "shared_error")}
    names = {"cores": "core numbers"}  # in a space file `cores` is their count, and 0 pins to none
    return [
        f"  fact     {_one(names.get(name, name))} = {one_line(shown(value), MOST_OF_A_FACT)}"
        for name, value in said.items()
    ]
