"""What can be seen of the numbers that a Python expression comes to: if they are whole, or negative. Pure."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence

from autotune.space.configuration import Value


def function_name(node: ast.Call) -> str:
    """The function that is called, of ``math`` and NumPy without the module."""
    return ast.unparse(node.func).removeprefix("math.").removeprefix("np.").removeprefix("numpy.")


class Seen:
    """Looks at expressions over knobs; ``values_of`` says the values of one that is a knob, else none."""

    def __init__(self, values_of: Callable[[ast.expr], Sequence[Value]]) -> None:
        self.values_of = values_of

    def is_whole(self, node: ast.expr) -> bool:
        """Whether a value is a whole number, as far as can be seen, so that rounding it changes nothing."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, int)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                return self.is_whole(operand)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self.is_whole(left) and self.is_count(right)
            case ast.BinOp(left=left, op=op, right=right):
                return not isinstance(op, ast.Div) and self.is_whole(left) and self.is_whole(right)
            case ast.Call(args=arguments):
                return self.is_whole_call(function_name(node), arguments)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return all(map(self.is_whole, parts))
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return True  # of and and or only those between conditions are translated
        values = self.values_of(node)
        return bool(values) and all(isinstance(value, int) for value in values)

    def is_whole_call(self, name: str, arguments: Sequence[ast.expr]) -> bool:
        match name, arguments:
            case (("int" | "ceil" | "floor"), [_]):
                return True
            case "pow", [one, two]:
                return self.is_whole(one) and self.is_count(two)
        return name in ("float", "abs", "min", "max") and all(map(self.is_whole, arguments))

    def never_negative(self, node: ast.expr) -> bool:
        """Whether a value is a number and not negative, as far as can be seen."""
        match node:
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return self.least(node) >= 0
            case ast.BinOp(left=left, right=right):
                return self.never_negative(left) and self.never_negative(right)
            case ast.Call(args=arguments):
                return function_name(node) == "abs" or all(map(self.never_negative, arguments))
        return self.least(node) >= 0

    def least(self, node: ast.expr) -> float:
        """A bound below a sum, as ``a + b - 1`` of what is rounded up; minus infinity where none is seen."""
        match node:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.least(left) + self.least(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self.least(left) - max(self.numbers(right), default=math.inf)
        if isinstance(node, (ast.BinOp, ast.Call)):
            return 0.0 if self.never_negative(node) else -math.inf
        return min(self.numbers(node), default=-math.inf)

    def numbers(self, node: ast.expr) -> Sequence[float]:
        """The values of a constant or a knob, if all of them are numbers; else none."""
        values = (node.value,) if isinstance(node, ast.Constant) else self.values_of(node)
        numbers = [value for value in values if isinstance(value, (int, float))]
        return numbers if len(numbers) == len(values) else ()

    def is_count(self, node: ast.expr) -> bool:
        """Whether a value is a whole number and not negative."""
        values = (node.value,) if isinstance(node, ast.Constant) else self.values_of(node)
        return bool(values) and all(isinstance(value, int) and value >= 0 for value in values)
