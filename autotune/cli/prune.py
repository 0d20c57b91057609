"""``autotune prune``: what may be deleted, and what depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from autotune.cli.codes import BAD_INPUT, DONE
from autotune.cli.options import echo, json_option, print_json, store_option, study_option
from autotune.cli.silence import said_if_long
from autotune.errors import InputError, Problem

if TYPE_CHECKING:
    from autotune.session.prunable import Prunable


NOTHING_LOOSE = "nothing can be deleted: something refers to all that the store has"


@click.command("prune")
@study_option("A whole study: NAME, or NAME#ID.")
@click.option("--replays", is_flag=True, help="The readings of replays and verifications.")
@click.option("--yes", is_flag=True, help="Delete it; without this option it is only listed.")
@click.option("--force", is_flag=True, help="Delete it even if something depends on it.")
@store_option
@json_option
def command(
    study: str | None, replays: bool, yes: bool, force: bool, store: str | None, as_json: bool
) -> int:
    """Say what may be deleted and what depends on it; with --yes, delete it.

    Without --study or --replays: files and environments in the store that nothing refers to. Single trials of
    a search are never deleted, since every later proposal follows from them. The exit code is 2 if --yes was
    given and nothing was deleted because something depends on it.
    """
    from autotune.session import prunable
    from autotune.store.store import Store

    if study is not None and replays:
        raise InputError(Problem("--study and --replays were both given", None, "one of them"))
    reading = "looking for what refers to it: Ctrl-C ends it"
    with said_if_long(reading, quiet=as_json), Store.open(store, readonly=not yes) as opened:
        if study is not None:
            what = prunable.whole_study(opened, opened.study(study))
        elif replays:
            what = prunable.replicates(opened)
        else:
            what = prunable.loose(opened)
        refused = bool(what.leaning) and not force
        done = yes and not refused and not what.nothing
        if done:
            prunable.delete(opened, what)
    if as_json:
        print_json({**what.to_document(), "deleted": done})
    else:
        none = "the store has no replays or verifications" if replays else NOTHING_LOOSE
        echo(none if what.nothing else say(what, done))
    if yes and refused:
        click.echo("autotune: nothing was deleted, since something depends on it; see --force", err=True)
        return BAD_INPUT
    return DONE


def say(what: Prunable, done: bool) -> str:
    """What is or would be deleted, in lines."""
    from autotune.cli.export import say_repeats
    from autotune.report.numbers import say_count

    lines = ["deleted:" if done else "would be deleted:"]
    trials = f"{say_count(what.trials, 'trial')}{say_repeats(what.repeats)}"
    lines += [f"  study {study.label} with {trials}, and all readings" for study in what.studies]
    if what.sessions:
        again = say_count(what.repeats, "measurement")
        whose = say_count(len(what.sessions), "replay or verification", "replays and verifications")
        lines.append(f"  {again} again of {whose}")
    if what.loose.artifacts:
        lines.append(f"  {say_count(len(what.loose.artifacts), 'file')}, {what.loose.bytes / 1e3:,.1f} kB")
    if what.loose.environments:
        lines.append(f"  {say_count(len(what.loose.environments), 'environment')}")
    lines += [f"depends on it: {text}" for text in what.leaning]
    if done:
        lines.append("the database file keeps its size; the space that became free is used again")
    elif what.leaning:
        lines.append("delete it all the same with --yes --force")
    else:
        lines.append("delete it with --yes")
    return "\n".join(lines)
