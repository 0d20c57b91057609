"""``autotune dashboard``: what a store holds and what runs now, in a browser; or the notebooks."""

from __future__ import annotations

import errno
import socket

import click

from autotune.cli.options import json_option, print_json, store_option
from autotune.errors import InputError, Problem


@click.command("dashboard")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Other machines need a token, which is made and shown.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any that is free."
)
@click.option("--open/--no-open", "open_browser", default=True, help="Whether to open a browser.")
@click.option("--notebooks", is_flag=True, help="Open the notebooks instead, in JupyterLab.")
@store_option
@json_option
def command(
    host: str, port: int, open_browser: bool, notebooks: bool, store: str | None, as_json: bool
) -> int:
    """Show the studies of a store in a browser, live while searches run. It only reads."""
    if notebooks:
        from autotune.report.notebooks import open_notebooks

        open_notebooks(store, host, port, open_browser)
    from autotune.report.pages.live import LiveView
    from autotune.report.pages.live_server import LOOPBACK, LiveServer, new_token

    _require_readable(store)
    try:
        server = LiveServer(LiveView(store), host, port, "" if host in LOOPBACK else new_token())
    except OSError as error:
        raise InputError(
            Problem(f"{host}:{port} cannot be listened on: {error.strerror or error}", hint=_hint(error))
        ) from error
    try:
        if as_json:
            print_json({"address": server.address, "elsewhere": server.elsewhere or None})
        else:
            click.echo(f"{server.address}   (Ctrl-C ends it)")
            if server.elsewhere:
                click.echo(f"{server.elsewhere}   (from other machines)")
        if open_browser:
            import webbrowser

            webbrowser.open(server.address)
        server.run()
    except KeyboardInterrupt:
        click.echo(err=True)
    return 0


def _hint(error: OSError) -> str:
    """What to choose instead of an address or port that cannot be listened on."""
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return "--host is a name or an address of this machine: 127.0.0.1, or 0.0.0.0 for all it has"
    return "choose another --port, or --port 0 for any that is free"


def _require_readable(store: str | None) -> None:
    """Note that there is no store yet: a search may be about to make it, or the name is misspelt.

    A store that exists and cannot be read ends the command with its error, as in every other command.
    """
    from autotune.report.evidence import opened
    from autotune.store.databases.opening import EmptyStoreError

    try:
        with opened(store):
            pass
    except EmptyStoreError as error:
        click.echo(f"note: {error}\n      Its studies are shown once they are there.", err=True)
