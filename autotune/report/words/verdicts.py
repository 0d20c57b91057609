"""The result of a verification in words: the values then beside those of now."""

from __future__ import annotations

from autotune.measure.outcome import Estimate
from autotune.report.numbers import say_count, say_estimate, say_ratio
from autotune.report.words.titled import titled
from autotune.session.reproduction.agreement import Verification
from autotune.session.reproduction.replicates import Interval
from autotune.space.spec import ratio_title


def say_intervals(result: Verification) -> list[str]:
    """Lines on the ratio to the default, the metric, the pace and the default, as far as they are known."""
    lines: list[str] = []
    title = ratio_title(result.goal, result.unit)
    if "speedup" in result.now and "speedup" in result.then:
        lines += titled(title, f"{_ratio(result, 'then')} then, {_ratio(result, 'now')} now")
    elif "speedup" in result.now:
        lines += titled(title, f"{_ratio(result, 'now')} now, over the default")
    if "metric" in result.now:
        lines += titled(result.metric, _then_and_now(result, "metric"))
    if result.slower is not None:
        here = _value(result.now["at_pace"], result.unit)
        lines += titled(
            "pace", f"a core takes {result.slower:.3g} times as long as then; at that pace {here}"
        )
    if "default" in result.now:
        lines += titled("default", _then_and_now(result, "default"))
    return lines


def say_result(result: Verification) -> list[str]:
    """As :func:`say_intervals`, with the smallest change that would have been noticed, and the remark."""
    lines = say_intervals(result)
    if result.noticeable is not None:
        lines += titled("noticeable", f"only a change of {result.noticeable:.1%} or more")
    return lines + (titled("remark", result.remark) if result.remark else [])


def say_rounds(result: Verification) -> str:
    """``25 rounds in 5 runs``."""
    return f"{say_count(result.rounds, 'round')} in {say_count(result.runs, 'run')}"


def _ratio(result: Verification, side: str) -> str:
    return say_ratio(*getattr(result, side)["speedup"])


def _then_and_now(result: Verification, name: str) -> str:
    then = f"{_value(result.then[name], result.unit)} then, " if name in result.then else ""
    return f"{then}{_value(result.now[name], result.unit)} now"


def _value(interval: Interval, unit: str) -> str:
    value, low, high = interval
    return say_estimate(Estimate(value, low, high, 2, 0.0), unit)
