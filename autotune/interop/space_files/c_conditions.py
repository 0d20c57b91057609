"""Conditions with signs of C (``&&``, ``||``, ``!``) in Python, and what means another thing in C. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

_TEXT = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_SIGNS = re.compile(rf"{_TEXT}|\s*(?:&&|\|\|)\s*|!(?!=)\s*", re.DOTALL)
"""What stands for ``and``, ``or`` and ``not``; and quoted texts, in which it means nothing."""


def in_python(text: str) -> str:
    """``text`` with ``and``, ``or`` and ``not`` in the place of C's signs for them, and then on one line."""
    words = {"&&": " and ", "||": " or ", "!": "not "}
    found = _SIGNS.sub(lambda sign: words.get(sign[0].strip(), sign[0]), text)
    return text if found == text else found.replace("\n", " ")


def otherwise_in_c(
    tree: ast.AST, text: str, is_whole: Callable[[ast.expr], bool]
) -> tuple[ast.expr, str, str] | None:
    """A part that means another thing in C, why, and what to write; ``None`` where all means the same.

    ``tree`` is that of ``text``, which :func:`in_python` has given; ``is_whole`` tells the expressions that
    come to whole numbers.
    """
    source = text.encode()
    for node in ast.walk(tree):
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=ast.Compare() | ast.BinOp() as operand):
                if b"(" not in source[node.col_offset + len("not") : operand.col_offset]:
                    why = "in C the ! would be of its first operand alone"
                    return node, why, "put brackets around what it is to negate"
            case ast.Compare(ops=[_, _, *_]):
                why = "in C the result of the first comparison would be compared with the rest"
                return node, why, "write two comparisons, or brackets around each"
            case ast.Compare(left=one, comparators=[other]):
                between = source[one.end_col_offset : other.col_offset]
                if (_is_bits(one) and b")" not in between) or (_is_bits(other) and b"(" not in between):
                    why = "in C the comparison would come first"
                    return node, why, "put brackets around what comes first"
            case ast.BinOp(left=left, op=ast.Div(), right=right) if is_whole(left) and is_whole(right):
                why = "in C whole numbers are divided without a rest"
                return node, why, "write it in Python: a // b for that, and, or and not for the signs of C"
    return None


def _is_bits(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor))
