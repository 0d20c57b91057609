"""``autotune best``: the best configuration of a study, in the form that the next program reads."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from autotune.cli.codes import NOTHING_SUCCEEDED
from autotune.cli.options import json_option, print_json, store_option, study_argument
from autotune.errors import InputError, Problem

if TYPE_CHECKING:
    from autotune.session.result import Result
    from autotune.space.configuration import Configuration, Value
    from autotune.store.records import StudyRecord


@click.command("best")
@click.option(
    "--format",
    "form",
    type=click.Choice(["yaml", "json", "env", "flags", "set", "command", "config"]),
    default="yaml",
    show_default=True,
    help="yaml; json (with metrics and speed-up); env (KNOB=value lines, in capitals); flags (--knob=value);"
    " set (--set knob=value, for a script with run.add_arguments);"
    " command (the command line that was run); config (the config file that it was given).",
)
@click.option("--front", is_flag=True, help="With several goals: each configuration that no other beats.")
@study_argument()
@store_option
@json_option
def command(form: str, front: bool, study: str | None, store: str | None, as_json: bool) -> int:
    """Print the best configuration of a study: the defended winner by its first goal, or the best so far."""
    from autotune.report.text import visible
    from autotune.session.answers import load_best
    from autotune.store.store import Store

    with Store.open(store, readonly=True) as opened:
        record = opened.study(study)
        result = load_best(opened, record, front=front or len(record.goals) > 1)
    if as_json or form == "json":
        print_json(front_document(result) if front else result.to_document())
    elif result.best is not None:
        click.echo(say(result, form, front))
    if result.best is None:
        why = f"\n  {visible(result.why_nothing)}" if result.why_nothing else ""
        click.echo(f"autotune: study {result.study.name}: {result.remark}{why}", err=True)
        return NOTHING_SUCCEEDED
    return 0


def say(result: Result, form: str, front: bool) -> str:
    """The best configuration, or each one on the front; YAML has a comment above it on how good it is.

    Above the best one it has the remark too: whoever keeps the file has to know what the answer is worth.
    """
    from autotune.interop.space_files.space_text import comment_lines
    from autotune.report.words.summary import headline, say_goals
    from autotune.space.spec import say_workload

    if form in OF_A_COMMAND:
        write, between = OF_A_COMMAND[form](result.study), "\n"
    else:
        write, between = FORMS[form]
    remark: list[str] = []
    if front:
        chosen = [(t.configuration, f"trial {t.number}: {say_goals(result, t)}") for t in result.front]
    else:
        assert result.best is not None
        workload = say_workload(result.study.workload)
        chosen = [(result.best, headline(result) + (f" for {workload}" if workload else ""))]
        remark = comment_lines(f"Remark: {result.remark}") if result.remark else []
    heads = ["\n".join([*comment_lines(said), *remark, ""]) if form == "yaml" else "" for _, said in chosen]
    return between.join(f"{head}{write(one)}" for head, (one, _) in zip(heads, chosen, strict=True))


def _command_of(study: StudyRecord) -> Callable[[Configuration], str]:
    """Writes the lines for a shell that prepare and run the study's command, from its space's folder.

    Raises :class:`InputError` where it has no command, or one that asks for knobs by itself.
    """
    from autotune.cli.by_hand import by_hand
    from autotune.measure.commands.handing import unwritten
    from autotune.provenance.document import part_of
    from autotune.session.opening.identity import command_of
    from autotune.space.placeholders import FOLDER

    if (spec := command_of(study)) is None:
        message = f"the objective of {study.label} is no command"
        raise InputError([Problem(message, expected="--format yaml, json, env, flags or set")])
    if asked := unwritten(spec, part_of(study.document, "space", "knobs")):
        message = f"the command of {study.label} is not given {', '.join(asked)}: its program asks for that"
        raise InputError([Problem(message, expected="--format set, yaml, json, env or flags")])

    def write(configuration: Configuration) -> str:
        given = by_hand(study, configuration)
        config = [f"# {given.config_file}: what --format config writes"] if given.config_file else []
        folder = [f"mkdir -p {FOLDER}"] if given.uses_folder else []
        parts = [given.commands[part] for part in ("prepare", "run") if part in given.commands]
        return "\n".join([*folder, *config, *map(shlex.join, parts)])

    return write


def _config_of(study: StudyRecord) -> Callable[[Configuration], str]:
    """Writes the config file of the study's command. Raises :class:`InputError` where it has none."""
    from autotune.cli.by_hand import by_hand

    def write(configuration: Configuration) -> str:
        given = by_hand(study, configuration)
        if not given.config_file:
            message = f"the objective of {study.label} is given no config file"
            raise InputError([Problem(message, expected="--format yaml, json, env, flags, set or command")])
        return given.config_text.removesuffix("\n")

    return write


def front_document(result: Result) -> dict[str, Any]:
    from autotune.session.result import front_document as document

    goals = {goal.name: goal.goal for goal in result.goals}
    front = [document(trial) for trial in result.front]
    return {"study": result.study.name, "study_id": result.study.id, "goals": goals, "front": front}


def _yaml(configuration: Mapping[str, Value]) -> str:
    from autotune.measure.commands.placeholders import yaml_key, yaml_value

    return "\n".join(f"{yaml_key(name)}: {yaml_value(value)}" for name, value in configuration.items())


def _env(configuration: Mapping[str, Value]) -> str:
    words = _words(configuration)
    variables = _variables(words)
    return "\n".join(f"{variables[name]}={shlex.quote(word)}" for name, word in words.items())


def _variables(knobs: Iterable[str]) -> dict[str, str]:
    """The shell variable of each knob.

    Raises :class:`InputError` for a name that is no variable of a shell, and for one that two knobs share.
    """
    others = "with --format flags, json or yaml, knobs keep their own names"
    found: dict[str, str] = {}
    problems = []
    for name in knobs:
        variable = name.upper()
        earlier = next((knob for knob, known in found.items() if known == variable), None)
        if not (variable.isascii() and variable.isidentifier()):
            expected = "letters from a to z, digits and underscores"
            message = f"the name of the knob {name!r} cannot be that of a shell variable"
            problems.append(Problem(message, expected=expected, hint=others))
        elif earlier is not None:
            problems.append(Problem(f"the knobs {earlier!r} and {name!r} are both {variable}", hint=others))
        found[name] = variable
    if problems:
        raise InputError(problems)
    return found


def _flags(configuration: Mapping[str, Value]) -> str:
    return " ".join(shlex.quote(f"--{name}={word}") for name, word in _words(configuration).items())


def _set(configuration: Mapping[str, Value]) -> str:
    """As a script's ``--set`` reads it: lists and maps as JSON, by the type of the default."""
    from autotune.measure.commands.placeholders import as_text
    from autotune.space.configuration import plain

    words = []
    for name, value in configuration.items():
        simple = plain(value)
        text = json.dumps(simple) if isinstance(simple, (list, dict)) else as_text(value)
        words.append(f"--set {shlex.quote(f'{name}={text}')}")
    return " ".join(words)


def _words(configuration: Mapping[str, Value]) -> dict[str, str]:
    from autotune.measure.commands.placeholders import as_text

    return {name: as_text(value) for name, value in configuration.items()}


FORMS: dict[str, tuple[Callable[[Configuration], str], str]] = {
    "yaml": (_yaml, "\n---\n"),
    "env": (_env, "\n\n"),
    "flags": (_flags, "\n"),
    "set": (_set, "\n"),
}
"""By format: how a configuration is written, and the text between two configurations of a front."""
OF_A_COMMAND: dict[str, Callable[[StudyRecord], Callable[[Configuration], str]]] = {
    "command": _command_of,
    "config": _config_of,
}
"""The formats that depend on the study's command."""
