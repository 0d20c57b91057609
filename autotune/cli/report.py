"""``autotune report``: one file that says what a study found, how sure that is, and how it is known."""

from __future__ import annotations

import re
import time
from pathlib import Path

import click

from autotune.cli.options import json_option, print_json, store_option, study_argument
from autotune.cli.silence import said_if_long
from autotune.cli.writing import write_text

WRITING = "reading the trials and drawing what they say: Ctrl-C ends it"


@click.command("report")
@click.option("-o", "--output", metavar="FILE", help="Where to write it; - is stdout.  [default: STUDY.html]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md"]),
    help="html: one file for a browser. md: for a pull request, on stdout.  [default: by the file's ending]",
)
@click.option("--open", "open_browser", is_flag=True, help="Open it in a browser.")
@study_argument()
@store_option
@json_option
def command(
    output: str | None,
    form: str | None,
    open_browser: bool,
    study: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Write a report of STUDY (a name or NAME#ID; by default the latest of the store).

    The HTML is a single file that needs no network: it can be mailed, put on a server or printed.
    """
    from autotune.errors import InputError, Problem
    from autotune.report.pages.html import html_page
    from autotune.report.pages.markdown import markdown
    from autotune.report.pages.study_page import study_page
    from autotune.store.store import Store

    if as_json and output == "-":
        message = "the report and its JSON document cannot both go to stdout"
        raise InputError(Problem(message, hint="give -o a file, or leave --json out"))
    form = form or ("md" if output and output.endswith((".md", ".markdown")) else "html")
    with said_if_long(WRITING, quiet=as_json), Store.open(store, readonly=True) as opened:
        record = opened.study(study)
        page = study_page(opened, record.id, time.time())
        text = markdown(page) if form == "md" else html_page(page)
    place = output or ("-" if form == "md" and not as_json else f"{_file_name(record.label)}.{form}")
    if place == "-":
        click.echo(text, nl=False)
        return 0
    write_text(Path(place), text)
    if open_browser:
        import webbrowser

        webbrowser.open(Path(place).absolute().as_uri())
    if as_json:
        written = {"file": str(Path(place).absolute()), "format": form, "bytes": len(text.encode())}
        print_json({"study": record.name, "study_id": record.id, **written})
    else:
        click.echo(place)
    return 0


def _file_name(title: str) -> str:
    """A study's label as a file name that every system allows: ``gemm-c-1`` for ``gemm-c#1``."""
    return re.sub(r"[^\w.-]+", "-", title, flags=re.ASCII).strip("-.")[:80] or "study"
