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
_COUNTED = r"(?P<counted>B|bits?|b(?=ps)|ops|(?:FLOP|[Ff]lop)s?|Hz)"
_AMOUNT = rf"(?P<magnitude>[kKMGT]i?)?{_COUNTED}(?P<rate>/s(?:ec)?|ps|(?<=FLOP)S)?"
_OF_AMOUNT = re.compile(_AMOUNT)
_SHORT_TIMES = "|".join(unit for unit, seconds in TIMES.items() if seconds <= 1.0)
_APART = re.compile(rf"[^\S\r\n]?(?:(?P<time>{_SHORT_TIMES})|{_AMOUNT})(?![\w=:/])")
"""What may stand behind a space, as in ``950.1 ms``. ``avg 5 min 3 max 9`` has no unit, nor has ``5 s=3``."""
_OF_METRIC = re.compile(rf"{_SIZE}(?:/|ps$|$|I?OPS|FLOP|[Ff]lop|ops|Hz)")

_PLAIN = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_EXPONENT = re.compile(r"[eE][-+]?[0-9]+")
_MANTISSA = re.compile(r"(?<![\w.,])(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?$")
_THOUSANDS = re.compile(r"(?:,[0-9]{3})+(?![0-9,])(?:\.[0-9]+)?")
_BEFORE_THOUSANDS = re.compile(r"(?<![\w.,])[0-9]{1,3}(?:,[0-9]{3})*,$")
_TIME = re.compile(r"[^\S\r\n]?(?:[mnuµμ]?s|m?secs?|seconds?)\b(?![=:])")
_FRACTION = re.compile(rf",[0-9]+(?={_TIME.pattern})")
_BEFORE_FRACTION = re.compile(r"(?<![\w.,])[0-9]+(?:\.[0-9]{3})*,$")
"""Parts of ``1.2e-05``, ``1,234,567`` and ``3,5 ms`` that a group may leave out, after it and before it."""
_LONGEST = 64

_OF_POINTS = re.compile(r"[-+]?[0-9]{1,3}(?:\.[0-9]{3})+")
"""Thousands where a comma begins the fraction, as in ``1.234,5 ms``."""
_IN_THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{,2}(,[0-9]{3})+(\.[0-9]*)?")
_WITH_COMMAS = re.compile(r"[-+]?[0-9]+(\.[0-9]{3})*(,[0-9]+)+(\.[0-9]*)?")


def without_colours(text: str) -> str:
    """What a program has printed, without colours."""
    return _COLOUR.sub("", text)


def by_patterns(
    patterns: Mapping[str, str], metrics: Sequence[MetricSpec], stdout: str, stderr: str
) -> Mapping[str, object]:
    """The last match of each pattern in stdout, or else in stderr.

    Where a unit of time or a magnitude such as ``k`` or ``MiB`` is part of it or follows the digits directly,
    or a unit of the same kind as the metric's follows a space, the number is converted to the unit of the
    metric.
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
    behind = _apart(match.string, end, unit) or _BEHIND.match(match.string, end)
    printed = whole or (behind if written else None)
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


def _apart(text: str, end: int, unit: str) -> re.Match[str] | None:
    """The unit behind a space, where it is of the kind of the metric's: what follows may be another word."""
    found, wanted = _APART.match(text, end), _OF_AMOUNT.fullmatch(unit)
    if found is None or found["time"]:
        return found
    alike = wanted is not None and _kind(found) == _kind(wanted)
    return found if alike else None


def _kind(amount: re.Match[str]) -> tuple[str, bool]:
    """What is counted, and whether it is per second."""
    counted, is_rate = amount["counted"], bool(amount["rate"])
    if counted.lower().startswith("flop"):
        return "flop", is_rate or counted.endswith("s")  # GFLOPs and Gflops mostly are rates, as GFLOPS is
    return counted[0], is_rate


def _whole_number(match: re.Match[str]) -> tuple[str, int]:
    """The number in the group, completed by what the group left out of it (except a sign); and where it ends.

    ``([0-9.]+)`` finds 1.2 in ``1.2e-05``, and ``([0-9.]+) s`` finds 05. A comma that the pattern itself has
    matched separates two numbers.
    """
    text, written, (begin, end) = match.string, match[1] or "", match.span(1)
    if not (_PLAIN.fullmatch(written) or _OF_POINTS.fullmatch(written)):
        return written, end
    behind = _EXPONENT.match(text, end)
    if not behind and match.end() == end:
        if re.fullmatch(r"[-+]?[0-9]{1,3}", written):
            behind = _THOUSANDS.match(text, end)
        if not behind and (written.lstrip("-+").isdigit() or _OF_POINTS.fullmatch(written)):
            behind = _FRACTION.match(text, end)
    before = None
    if match.start() == begin and written[0].isdigit():
        before = _before(written, text, begin, end)
    whole = f"{before[0] if before else ''}{written}{behind[0] if behind else ''}"
    return whole, behind.end() if behind else end


def _before(written: str, text: str, begin: int, end: int) -> re.Match[str] | None:
    """What a pattern that begins with its group has left out before it."""
    if text[begin - 1 : begin] != ",":
        return _MANTISSA.search(text, max(begin - _LONGEST, 0), begin)
    found = None
    if re.match(r"[0-9]{3}(?![0-9])", written):
        found = _BEFORE_THOUSANDS.search(text, max(begin - _LONGEST, 0), begin)
    if not found and written.isdigit() and _TIME.match(text, end):
        found = _BEFORE_FRACTION.search(text, max(begin - _LONGEST, 0), begin)
    return found


def _size(unit: re.Match[str] | None) -> float:
    """The factor that the prefix of a unit stands for; 1 without one."""
    return _MAGNITUDES.get(unit["magnitude"] or "", 1.0) if unit else 1.0


def how_to_read(text: str) -> str:
    """What to do about a number in a form that cannot be read, as the end of a message; else empty."""
    if (whole := _WITH_UNIT.fullmatch(text)) and whole["time"]:
        return ": give the metric a unit of time, as unit: ms"
    if not _WITH_COMMAS.fullmatch(text):
        return ""
    how = "without commas (| tr -d ,)" if _IN_THOUSANDS.fullmatch(text) else "with a point (LC_ALL=C)"
    return f": print it {how}; a comma between two numbers has to be in the pattern"
