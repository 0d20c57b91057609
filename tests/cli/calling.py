"""Verbs called in this process, as the command line calls them."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result


def call(verb: Any, *arguments: object) -> Result:
    return CliRunner().invoke(verb, [str(one) for one in arguments], standalone_mode=False)


def document(verb: Any, *arguments: object) -> Any:
    """The JSON document that a verb prints."""
    done = call(verb, *arguments, "--json")
    assert done.exception is None, done.exception
    return json.loads(done.stdout)
