"""When each trial was prepared and measured: how busy the device was, and a drawing of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from autotune.measure.facts import TIMELINE
from autotune.store.records import TrialRecord


@dataclass(frozen=True)
class Span:
    """A worker was at a trial, from ``began`` to ``ended`` seconds after the search began."""

    trial: int
    stage: str
    """``prepare``, ``check`` or ``measure``."""
    lane: int
    """Which of the workers that are at this stage side by side."""
    began: float
    ended: float


@dataclass(frozen=True)
class Spans:
    """All of a search, by when they began."""

    all: tuple[Span, ...]

    @property
    def wall(self) -> float:
        """Seconds from the beginning of the first trial to the end of the last one."""
        return max((span.ended for span in self.all), default=0.0)

    def of(self, stage: str) -> tuple[Span, ...]:
        return tuple(span for span in self.all if span.stage == stage)


def spans_of(trials: Iterable[TrialRecord]) -> Spans:
    """What the trials of one session were at, and when; those that have nothing on it are left out."""
    found = []
    for trial in trials:
        timeline = trial.facts.get(TIMELINE)
        if isinstance(timeline, Mapping):
            found += [_span(trial.number, stage, entry) for stage, entry in timeline.items()]
    first = min((span.began for span in found), default=0.0)
    moved = (Span(s.trial, s.stage, s.lane, s.began - first, s.ended - first) for s in found)
    return Spans(tuple(sorted(moved, key=lambda span: (span.began, span.stage))))


def _span(trial: int, stage: str, entry: Any) -> Span:
    began, ended, lane = entry
    return Span(trial, stage, int(lane), float(began), float(ended))


def busy(spans: Spans, stage: str = "measure") -> float:
    """The part of the search in which the workers of a stage had a trial; of several, the mean."""
    lanes = {span.lane for span in spans.of(stage)}
    if not lanes or spans.wall <= 0.0:
        return 0.0
    return sum(span.ended - span.began for span in spans.of(stage)) / (spans.wall * len(lanes))


# -- drawn -------------------------------------------------------------------------------------

_WIDTH, _ROW, _GAP, _LEFT, _TOP = 1000, 22, 6, 90, 34
_COLOURS = {"prepare": "#b9c8dd", "check": "#7d9cc4", "measure": "#d9822b"}


def timeline_svg(spans: Spans) -> str:
    """A bar a trial, a row a worker; the pointer on a bar says which trial it is."""
    rows = sorted({(span.stage, span.lane) for span in spans.all}, key=lambda r: (r[0] != "measure", r[1]))
    scale = (_WIDTH - _LEFT - 10) / max(spans.wall, 1e-9)
    height = _TOP + len(rows) * (_ROW + _GAP) + 26
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"'
        f' viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="20">measuring {busy(spans):.0%} of {spans.wall:.1f} s,'
        f" {len(spans.of('measure'))} trials</text>",
    ]
    for place, (stage, lane) in enumerate(rows):
        y = _TOP + place * (_ROW + _GAP)
        parts.append(f'<text x="4" y="{y + 15}">{stage} {lane}</text>')
        for span in spans.all:
            if (span.stage, span.lane) == (stage, lane):
                parts.append(_bar(span, y, scale))
    parts += [_tick(seconds, height, scale) for seconds in _ticks(spans.wall)]
    return "\n".join([*parts, "</svg>", ""])


def _bar(span: Span, y: int, scale: float) -> str:
    width = max((span.ended - span.began) * scale, 0.5)
    return (
        f'<rect x="{_LEFT + span.began * scale:.1f}" y="{y}" width="{width:.1f}" height="{_ROW}"'
        f' fill="{_COLOURS.get(span.stage, "#888888")}" stroke="white" stroke-width="0.5">'
        f"<title>trial {span.trial}: {span.stage} {span.ended - span.began:.2f} s</title></rect>"
    )


def _ticks(wall: float) -> list[float]:
    step = next((s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if wall / s <= 12), 1000.0)
    return [step * i for i in range(int(wall / step) + 1)]


def _tick(seconds: float, height: int, scale: float) -> str:
    x = _LEFT + seconds * scale
    return f'<text x="{x:.1f}" y="{height - 6}" text-anchor="middle" fill="#555555">{seconds:g} s</text>'
