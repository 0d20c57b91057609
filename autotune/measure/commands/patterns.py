"""Numbers that regular expressions find in what a program has printed, each in the unit of its metric.

Load generators write one latency as ``3.40ms`` and the next as ``950.00us``, one rate as ``980`` and the next
as ``1.2k``: by the digits alone, the faster one would seem to be the slower.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence

from autotune.space.spec import TIMES, MetricSpec

_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
"""What makes a word bold or red (ECMA-48: SGR, and EL after it); some programs write it to files as well."""

_MAGNITUDES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12} | {
    f"{letter}i": 1024.0**power for power, letter in enumerate("KMGT", start=1)
}
"""Prefixes of a unit, which may also follow a number directly (IEC 80000-13)."""

_SIZE = rf"(?P<magnitude>{'|'.join(sorted(_MAGNITUDES, key=len, reverse=True))})?(?P<counted>bits?|[Bb])?"
_PRINTED = rf"(?P<time>{'|'.join(TIMES)})|{_SIZE}(?:ps)?"
_BEHIND = re.compile(rf"(?:{_PRINTED})(?![^\W_])")
_WITH_UNIT = re.compile(rf"(?P<digits>[-+.0-9eE]+)(?:\s*(?P<time>{'|'.join(TIMES)})|{_SIZE}(?:/s|ps)?)")
_OF_METRIC = re.compile(rf"{_SIZE}(?:/|ps$|$|I?OPS|FLOP|ops|Hz)")

_PLAIN = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_EXPONENT = re.compile(r"[eE][-+]?[0-9]+")
_MANTISSA = re.compile(r"(?<![\w.,])(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?$")
_THOUSANDS = re.compile(r"(?:,[0-9]{3})+(?![0-9,])(?:\.[0-9]+)?")
_BEFORE_THOUSANDS = re.compile(r"(?<![\w.,])[0-9]{1,3}(?:,[0-9]{3})*,$")
"""Parts of ``1.2e-05`` and ``1,234,567`` that the group of a pattern may have left out, after it and before
it."""
_LONGEST = 64

_WITH_COMMAS = re.compile(r"[-+]?[0-9]+(,[0-9]+)+(\.[0-9]*)?")


def without_colours(text: str) -> str:
    """What a program has printed, without colours."""
    return _COLOUR.sub("", text)


def by_patterns(
    patterns: Mapping[str, str], metrics: Sequence[MetricSpec], stdout: str, stderr: str
) -> Mapping[str, object]:
    """The last match of each pattern in stdout, or else in stderr.

    Where a unit of time or a magnitude such as ``k`` or ``MiB`` is part of it, or follows the digits
    directly, the number is converted to the unit of the metric.
    """
    units = {metric.name: metric.unit for metric in metrics}
    texts = [without_colours(text).replace("\r\n", "\n") for text in (stdout, stderr)]
    found: dict[str, object] = {}
    for name, pattern in patterns.items():
        for text in texts:
            if last := deque(re.finditer(pattern, text, flags=re.MULTILINE), maxlen=1):
                found[name] = _in_unit(last[0], units.get(name, ""))
                break
    return found


def _in_unit(match: re.Match[str], unit: str) -> str:
    written, end = _whole_number(match)
    whole = _WITH_UNIT.fullmatch(written)
    if whole and whole["digits"] == written:
        whole = None
    printed = whole or (_BEHIND.match(match.string, end) if written else None)
    if printed is None:
        return written
    if printed["time"]:
        if unit not in TIMES:
            return written
        factor = TIMES[printed["time"]] / TIMES[unit]
    elif not printed["magnitude"] and not printed["counted"]:
        return written
    else:
        factor = _size(printed) / _size(_OF_METRIC.match(unit))
    digits = whole["digits"] if whole else written
    try:
        return digits if factor == 1.0 else repr(float(digits) * factor)
    except ValueError:  # not a number, which is reported with the text as it was written
        return written


def _whole_number(match: re.Match[str]) -> tuple[str, int]:
    """The number in the group, completed by what the group left out of it (except a sign); and where it ends.

    ``([0-9.]+)`` finds 1.2 in ``1.2e-05``, and ``([0-9.]+) s`` finds 05. A comma that the pattern itself has
    matched separates two numbers.
    """
    text, written, (begin, end) = match.string, match[1] or "", match.span(1)
    if not _PLAIN.fullmatch(written):
        return written, end
    behind = _EXPONENT.match(text, end)
    if not behind and match.end() == end and re.fullmatch(r"[-+]?[0-9]{1,3}", written):
        behind = _THOUSANDS.match(text, end)
    before = None
    if match.start() == begin and written[0].isdigit():
        is_of_thousands = re.match(r"[0-9]{3}(?![0-9])", written)
        head = _BEFORE_THOUSANDS if is_of_thousands and text[begin - 1 : begin] == "," else _MANTISSA
        before = head.search(text, max(begin - _LONGEST, 0), begin)
    whole = f"{before[0] if before else ''}{written}{behind[0] if behind else ''}"
    return whole, behind.end() if behind else end


def _size(unit: re.Match[str] | None) -> float:
    """The factor that the prefix of a unit stands for; 1 without one."""
    return _MAGNITUDES.get(unit["magnitude"] or "", 1.0) if unit else 1.0


def how_to_read(text: str) -> str:
    """What to do about a number in a form that cannot be read, as the end of a message; else empty."""
    if (whole := _WITH_UNIT.fullmatch(text)) and whole["time"]:
        return ": give the metric a unit of time, as unit: ms"
    if _WITH_COMMAS.fullmatch(text):  # a thousand to some, a fraction to others
        return ": print it without commas (| tr -d ,); a comma between two numbers has to be in the pattern"
    return ""
