"""The command line's verbs, each in a file that is loaded when it is called, and how their errors end."""

from __future__ import annotations

import gc
import importlib
import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, TextIO

import click

from autotune import __version__
from autotune.cli.codes import BAD_INPUT, DONE, FAILED, INTERRUPTED, NOTHING_SUCCEEDED
from autotune.errors import AutotuneError, InputError, NothingFeasibleError, nearest

MOST_OF_AN_ERROR = 20_000
"""The most characters of an error's text that are shown."""

OBJECTS_BETWEEN_COLLECTIONS = 10_000
"""The threshold of Python's garbage collector, usually 700, as many objects as a few trials have. Reading a
long study, of which every object is kept, would spend a fifth of its time looking for garbage."""

GROUPS = {
    "Search": {
        "search": ("search", "Search a space and defend the winner."),
        "check": ("check", "Count a space, and say what each constraint removes."),
        "init": ("init", "Write a working space and objective to start from."),
        "convert": ("convert", "Make a space from a Triton, Kernel Tuner or T1 file."),
        "doctor": ("doctor", "Say what this machine can do, and what is missing."),
    },
    "See what was found": {
        "show": ("show", "Show the studies of a store, or one study."),
        "report": ("report", "Write one file: what was found, and how it is known."),
        "dashboard": ("dashboard", "Show the studies in a browser, live, or in notebooks."),
        "importance": ("importance", "Say which knobs matter, and which only together."),
        "spend": ("spend", "Say where the time went."),
    },
    "Use it": {
        "best": ("best", "Print the best configuration of a study."),
        "recipes": ("recipes", "List, export and import winners by workload and device."),
        "rule": ("rule", "Choose for other workloads by a small rule."),
    },
    "Doubt it": {
        "trial": ("trial", "Show everything known about one trial."),
        "why": ("why", "Tell why a trial was tried, and what came of it."),
        "derive": ("derive", "Derive all proposals again from the record, and compare."),
        "replay": ("replay", "Measure a trial again: does it come to what was stored?"),
        "verify": ("verify", "Does a winner still hold? Was an archive altered?"),
        "diff": ("diff", "Say what differs between two trials, studies or recipes."),
        "lineage": ("lineage", "Show what something comes from, and what came of it."),
    },
    "Keep it": {
        "export": ("export", "Write a study to a file, an archive or another tool."),
        "import": ("import_", "Bring in an archive, or a recorded search to replay."),
        "prune": ("prune", "Say what may be deleted, and what depends on it."),
    },
}
"""The verbs by purpose, each with its module in :mod:`autotune.cli` and its line of help."""

VERBS = {verb: told for verbs in GROUPS.values() for verb, told in verbs.items()}

_OFTEN_SAID = {
    "search": "run tune optimize optimise start resume continue",
    "check": "validate",
    "show": "list ls status studies trials info history log",
    "report": "plot",
    "best": "get use apply",
    "why": "explain",
    "diff": "compare",
    "prune": "delete remove rm clean",
}
_SYNONYMS = {word: verb for verb, words in _OFTEN_SAID.items() for word in words.split()}
"""What other tools call a verb. The verb that is spelt most alike may be another: ``prune`` for ``run``."""


class Group(click.Group):
    """A group whose error for an unknown command names the one that is meant, or the nearest that exists."""

    synonyms: ClassVar[Mapping[str, str]] = {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if hint := nearest(self.synonyms.get(args[0], args[0]), self.list_commands(ctx)):
                raise click.UsageError(f"{error.message} {hint[0].upper()}{hint[1:]}", ctx) from error
            raise


class Verbs(Group):
    """The verbs, which are imported when they are called."""

    synonyms = _SYNONYMS

    def make_context(self, *given: Any, **named: Any) -> click.Context:
        with _while_somebody_reads():
            return super().make_context(*given, **named)

    def invoke(self, ctx: click.Context) -> Any:
        with _while_somebody_reads():
            return super().invoke(ctx)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        module = importlib.import_module(f"autotune.cli.{VERBS[name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for wanted, verbs in GROUPS.items():
            with formatter.section(wanted):
                formatter.write_dl([(name, text) for name, (_, text) in verbs.items()])


@contextmanager
def _while_somebody_reads() -> Iterator[None]:
    """Exit with 0 if the reader of a pipe closes it, as in `autotune show | head`; click exits with 1."""
    try:
        yield
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):  # stdout and stderr, which Python flushes when it ends
            os.dup2(nowhere, stream)
        raise click.exceptions.Exit(DONE) from None


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="autotune")
def cli() -> None:
    """Find the fastest correct setting of a system's knobs by measuring it.

    Start with `autotune init`, or with a ready space: `autotune search gemm-c`.
    """


def call(arguments: list[str] | None = None) -> None:
    """Call the verb that the arguments name, and exit with the code that says how it ended."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    if sys.stdout is None:  # what is written then would be gone without a word
        sys.stdout = _refusing()
    try:
        code = cli.main(arguments, prog_name="autotune", standalone_mode=False)
    except NothingFeasibleError as error:
        fail(str(error), NOTHING_SUCCEEDED)
    except InputError as error:
        fail(str(error), BAD_INPUT)
    except AutotuneError as error:
        fail(str(error), FAILED)
    except click.ClickException as error:
        error.show()
        sys.exit(BAD_INPUT)
    except (KeyboardInterrupt, click.Abort):
        fail("interrupted", INTERRUPTED)
    except FileNotFoundError as error:  # without a file name: the current folder was deleted
        fail(f"{error.filename or 'the current folder'}: {error.strerror or error}", FAILED)
    except OSError as error:  # a full disk behind a pipe, a terminal that has gone
        fail(f"{error.filename or 'the output'}: {error.strerror or error}", FAILED)
    sys.exit(code if isinstance(code, int) else DONE)


def _refusing() -> TextIO:
    """In the place of an stdout that is closed (``>&-``): writing fails, as on a disk that is full."""
    raw = io.FileIO(os.open(os.devnull, os.O_RDONLY), "w")
    return io.TextIOWrapper(raw, encoding="utf-8", write_through=True)


def fail(text: str, code: int) -> None:
    """Write to stderr what went wrong, with control characters escaped, and exit with ``code``."""
    from autotune.report.text import visible

    click.echo(visible(f"autotune: {text}", MOST_OF_AN_ERROR), err=True)
    sys.exit(code)
