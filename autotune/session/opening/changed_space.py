"""What has changed in the space of a study that goes on, and how many of its trials still count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from autotune.errors import listed
from autotune.space.space import Space
from autotune.store.records import StudyRecord
from autotune.store.store import Store


def say_changed_space(store: Store, record: StudyRecord, now: Space) -> str:
    """What to tell the user about a study that goes on with another space."""
    before, after = record.document.get("space", {}), now.to_document()
    what = "; ".join(_differences(before, after))
    trials = [t for t in store.trials(record.id, purpose="search") if t.status.finished]
    count = sum(trial.configuration in now for trial in trials)
    said = f"the space of study {record.name!r} has changed" + (f" ({what})" if what else "")
    if not trials:
        return said
    if count:
        return f"{said}: {count} of its {len(trials)} earlier trials are still in it, and count"
    renamed = ". A knob with another name is another knob" if all(_new_and_gone(before, after)) else ""
    return f"{said}: none of its {len(trials)} earlier trials is in it any more{renamed}"


def _new_and_gone(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The knobs that only the new space has, and those that only the old one has."""
    old, new = before.get("knobs", {}), now["knobs"]
    return [name for name in new if name not in old], [name for name in old if name not in new]


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    old, new = before.get("knobs", {}), now["knobs"]
    both = [name for name in new if name in old]
    added, gone = _new_and_gone(before, now)
    changed = [name for name in both if _but_default(old[name]) != _but_default(new[name])]
    named = {"new": added, "gone": gone, "changed": changed}
    yield from (f"{how}: {listed(names)}" for how, names in named.items() if names)
    defaults = [
        f"{name}={new[name]['default']}" for name in both if old[name]["default"] != new[name]["default"]
    ]
    if defaults:
        yield f"another default: {listed(defaults)}"
    if before.get("constraints", []) != now["constraints"]:
        yield "other constraints"


def _but_default(knob: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in knob.items() if key not in ("default", "flag")}
