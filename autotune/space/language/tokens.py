"""The tokens of the rule language, and what to write instead of those that only other languages have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

Kind = Literal["number", "text", "name", "sign", "end"]


@dataclass(frozen=True)
class Token:
    """``column`` counts from 1."""

    kind: Kind
    text: str
    column: int

    def __str__(self) -> str:
        return "the end of the rule" if self.kind == "end" else f"'{self.text}'"


TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?\w*)
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<name>[^\W\d]\w*)
      | (?P<sign>===|!==|<<|>>|<>|=<|=>|:=|&&|\|\||\*\*|//|==|!=|<=|>=|\S)
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
NUMBER = re.compile(
    r"""(?P<whole>0[xX][0-9a-fA-F]+|0|[1-9]\d*(?:_\d+)*)
      | (?:\d+(?:_\d+)*\.(?:\d+(?:_\d+)*)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+)?
      | \d+(?:_\d+)*[eE][+-]?\d+""",
    re.VERBOSE | re.ASCII,
)
ESCAPES = {"\\\\": "\\", "\\'": "'", '\\"': '"', "\\n": "\n", "\\t": "\t"}

INSTEAD = {
    "=": "to compare, write ==",
    "===": "to compare, write ==",
    "!==": "to compare, write !=",
    "<>": "for 'differs from', write !=",
    "=<": "for 'at most', write <=",
    "=>": "for 'at least', write >=",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
    "×": "to multiply, write *",
    "&&": "write and",
    "&": "write and",
    "||": "write or",
    "|": "write or",
    "!": "write not",
    "~": "write not",
    "^": "for a power, write **",
    "<<": "to double n times, write * 2 ** n",
    ">>": "to halve n times, write // 2 ** n",
    ":=": "a rule cannot set anything; to compare, write ==",
    "is": "to compare, write ==",
    "if": "write the two cases with and and or",
    "?": "write the two cases with and and or",
    "{": "write a list with [ and ]",
    "}": "write a list with [ and ]",
    "lambda": "a rule is one expression over knobs",
    "for": "a rule is one expression over knobs: name each item",
    "None": "to make a knob exist only sometimes, give it a 'when'",
    "null": "to make a knob exist only sometimes, give it a 'when'",
}
"""What to write instead of something that other languages have."""


def scan(text: str, start: int) -> tuple[Token, int]:
    """The token that comes next from ``start`` on, and where it ends."""
    match = TOKEN.match(text, start)
    assert match is not None  # the pattern takes any character, and the end
    kind = cast(Kind, match.lastgroup)
    return Token(kind, match[kind], match.start(kind) + 1), match.end()
