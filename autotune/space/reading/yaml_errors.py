"""What is wrong with a text that is not YAML, in the words of the person who wrote it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from autotune.errors import InputError, Location, Problem

if TYPE_CHECKING:
    from ruamel.yaml.error import MarkedYAMLError

_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def refuse_control_characters(text: str, file: str) -> None:
    """Raise :class:`InputError` at the first character that YAML does not allow (section 5.1)."""
    found = _CONTROL.search(text)
    if not found:
        return
    line = text.count("\n", 0, found.start()) + 1
    column = found.start() - text.rfind("\n", 0, found.start())
    code = ord(found[0])
    what = "a NUL byte" if code == 0 else f"the control character U+{code:04X}"
    raise InputError(Problem(f"{what} in the text", Location(file, line, column), "a text file in UTF-8"))


def syntax_problem(error: MarkedYAMLError, file: str) -> Problem:
    """A scanner's or parser's complaint, with what it mostly means."""
    mark = error.problem_mark or error.context_mark
    where = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
    problem, context = str(error.problem or ""), str(error.context or "")
    message, hint = _meaning(problem, context)
    start = error.context_mark
    if start and mark and start.line != mark.line:
        began = f"it began at line {start.line + 1}"
        hint = f"{hint} ({began})" if hint else began
    return Problem(message, where, hint=hint)


def _meaning(problem: str, context: str) -> tuple[str, str]:
    for said in (problem, context):
        for needle, message, hint in _MEANINGS:
            if needle in said:
                return message, hint
    return f"not valid YAML: {problem or context}", ""


_BELOW = "a line that does not go with the {} above it"
_CHECK = "check its indentation and the lines above"
_MEANINGS = (
    # What the scanner or the parser says, what it means, what to do.
    (r"character '\t'", "a tab where a value or an indentation is expected", "indent with spaces"),
    (
        "mapping values are not allowed",
        "a ':' that begins no value here",
        "check the indentation, and that every ':' above has a space after it; quote a text that holds ': '",
    ),
    (
        "sequence entries are not allowed",
        "a '- ' that begins no item here",
        "begin each item on a line of its own, or write [a, b]; quote a text that begins with '- '",
    ),
    ("mapping keys are not allowed", "a '? ' that begins no key here", "quote a text that begins with '? '"),
    ("scanning an a", "a name is missing behind * or &", "quote a text that begins with * or &"),
    (
        "block scalar",
        "a text behind | or >, which begins on the next line",
        "quote a text that begins with | or >",
    ),
    (
        "could not find expected ':'",
        "a key without its ':'",
        "write  key: value  with a space after the colon",
    ),
    (
        "double-quoted scalar",
        'an unknown escape in a "text"',
        "write \\\\ for a backslash, or use 'single quotes'",
    ),
    (
        "<document start>",
        "a text behind the end of the space",
        "close each bracket once, and begin no line with %",
    ),
    ("end of stream", "a quoted text that does not end", "close the quote"),
    ("<stream end>", "the file ends inside brackets", "close every [ and {"),
    (
        "expected the node content",
        "a value is missing here",
        "quote a text that begins with a bracket or a comma",
    ),
    (
        "flow sequence",
        "a list in [ ] that is not written right",
        "separate items by ', ' and close it with ']'; inside it, quote a text that holds any of , [ ] { }",
    ),
    (
        "flow mapping",
        "a mapping in { } that is not written right",
        "separate entries by ', ' and close it with '}'; inside it, quote a text that holds any of , [ ] { }",
    ),
    (
        "<block end>, but found '<scalar>'",
        "a text behind a value that is complete",
        "quote all of a text that begins with a quote or a bracket; else check the indentation",
    ),
    ("block mapping", _BELOW.format("mapping"), _CHECK),
    ("block collection", _BELOW.format("list"), _CHECK),
    ("block sequence", _BELOW.format("list"), _CHECK),
    (
        "cannot start any token",
        "a character that cannot begin a value",
        "quote a text that begins with @ ` or %",
    ),
)
