"""Numbers that regular expressions find in what a program has printed, each in the unit of its metric.

Load generators write one latency as ``3.40ms`` and the next as ``950.00us``: whoever reads the digits alone
takes the faster one for the slower.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence

from autotune.space.spec import TIMES, MetricSpec

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""How a program makes a word bold or red (ECMA-48, SGR), some of them in a file too."""

_UNIT = re.compile(rf"({'|'.join(TIMES)})(?![^\W_])")
_WITH_UNIT = re.compile(rf"([-+.0-9eE]+)\s*({'|'.join(TIMES)})")


_WITH_COMMAS = re.compile(r"[-+]?[0-9]+(,[0-9]+)+(\.[0-9]*)?")


def by_patterns(
    patterns: Mapping[str, str], metrics: Sequence[MetricSpec], stdout: str, stderr: str
) -> Mapping[str, object]:
    """The last match of each pattern in stdout, or else in stderr.

    Where a unit of time is part of it, or stands right behind the digits, it is in that of the metric.
    """
    units = {metric.name: metric.unit for metric in metrics}
    texts = [_COLOUR.sub("", text) for text in (stdout, stderr)]
    found: dict[str, object] = {}
    for name, pattern in patterns.items():
        for text in texts:
            if last := deque(re.finditer(pattern, text, flags=re.MULTILINE), maxlen=1):
                found[name] = _in_unit(last[0], units.get(name, ""))
                break
    return found


def _in_unit(match: re.Match[str], unit: str) -> str:
    written = match[1] or ""
    if whole := _WITH_UNIT.fullmatch(written):
        digits, printed = whole[1], whole[2]
    else:
        behind = _UNIT.match(match.string, match.end(1)) if written else None
        digits, printed = written, behind[1] if behind else ""
    if unit not in TIMES or printed not in TIMES or TIMES[printed] == TIMES[unit]:
        return digits if whole and unit in TIMES else written
    try:
        return repr(float(digits) * TIMES[printed] / TIMES[unit])
    except ValueError:  # no number: said with what was written
        return written


def how_to_read(text: str) -> str:
    """What to do about a number in a form that is not read, as the end of a message; else empty."""
    if _WITH_UNIT.fullmatch(text):
        return ": give the metric a unit of time, as unit: ms"
    if _WITH_COMMAS.fullmatch(text):  # a thousand to some, a fraction to others
        return ": have it printed without commas, by | tr -d , for one"
    return ""
