"""Bars as SVG: how near each kernel comes to its roofline, and the entrants of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from benchmarks.gpu_gemm import entrants_of
from benchmarks.gpu_plan import Document
from benchmarks.timeline import Span, Spans

_WIDTH, _ROW, _LEFT, _TOP, _BAR = 900, 24, 330, 40, 480


def bars(title: str, rows: Sequence[tuple[str, float, str]], full: float | None = None) -> str:
    """A bar a row: label, length, and the text behind it. ``full`` is the length of the whole width."""
    longest = full or max((length for _, length, _ in rows), default=1.0) or 1.0
    height = _TOP + _ROW * len(rows) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"'
        f' viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="10" y="22" font-size="14">{escape(title)}</text>',
    ]
    for place, (label, length, text) in enumerate(rows):
        y, width = _TOP + place * _ROW, max(1.0, _BAR * min(length / longest, 1.0))
        parts += [
            f'<text x="{_LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{_LEFT}" y="{y + 2}" width="{width:.1f}" height="{_ROW - 6}" fill="#d9822b"/>',
            f'<text x="{_LEFT + width + 6:.1f}" y="{y + 15}">{escape(text)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def gemm_plot(gemms: Mapping[str, Document]) -> str:
    """TFLOP/s of every entrant, shape by shape."""
    rows = []
    for name, found in gemms.items():
        work = found["workload"]
        operations = 2.0 * work["m"] * work["n"] * work["k"]
        for label, entrant in entrants_of(found).items():
            if entrant["time"]:
                rate = operations / entrant["time"]["value"] / 1e12
                title = " = ".join([label, *entrant["also"]])
                rows.append((f"{name}: {title}"[:52], rate, f"{rate:.1f}"))
    return bars("triton-gemm: TFLOP/s, measured in interleaved rounds", rows)


def roofline_plot(tuned: Mapping[str, Document]) -> str:
    """The share of its roofline that the best configuration of each kernel reaches."""
    shares = [(name, one["roofline"]) for name, one in tuned.items() if one.get("roofline")]
    rows = [(f"{name} ({roof['bound']})", roof["share"], f"{roof['share']:.0%}") for name, roof in shares]
    return bars("Share of the roofline reached by the tuned kernel", rows, full=1.0)


def timeline_of(found: Document) -> Spans:
    """The timeline that a comparison's document keeps of its search of the whole space."""
    return Spans(tuple(Span(*entry) for entry in found["timeline"]))
