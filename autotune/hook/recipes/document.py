"""Recipes as plain JSON and back; errors name the line and column. Pure.

::

    {"autotune_recipes": 2,
     "recipes": [{"name": "gemm-c", "device": "AMD EPYC 9654", "workload": {"m": 960, "n": 960, "k": 960},
                  "configuration": {"tile_m": 6, "tile_v": 2}, "defended": true,
                  "metric": {"name": "time", "value": 0.0041, "low": 0.0040, "high": 0.0042, "unit": "s",
                             "goal": "minimize"},
                  "speedup": {"estimate": 3.1, "low": 3.0, "high": 3.2}, "trials": 200,
                  "study": "gemm-c#1", "tuned": "2026-11-21", "source": "0123456789abcdef",
                  "versions": {"gcc": "gcc 12.2.0", "numpy": "2.1.0"},
                  "shares": {"cpu": 0.998, "steal": 0.0}}],
     "spaces": {"gemm-c": {"file": "../searchspaces/gemm-c.yaml", "space": {"knobs": {}, "constraints": []}}}}
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from typing import Any

from autotune.errors import InputError, Location, Problem, nearest, shorten
from autotune.hook.recipes.case import Case
from autotune.hook.recipes.json_place import place_of
from autotune.hook.recipes.recipe import Known, KnownSpace, Metric, Recipe, Speedup

FORMAT = 2
MARK = "autotune_recipes"
MAX_DEPTH = 100
"""Far deeper than any value of a knob, and no deeper than what walks through values can take."""

_OLDER = {"kernel": "name", "key": "workload"}
"""The names of some fields in version 1 of the format, which was for kernels only."""

Path = tuple[str | int, ...]


def to_document(recipe: Recipe) -> dict[str, Any]:
    """The JSON form; fields that are unknown or empty are left out."""
    case, speedup = recipe.case, recipe.speedup
    document: dict[str, Any] = {
        "name": recipe.name,
        "device": recipe.device,
        "machine": recipe.machine,
        "workload": dict(case.values),
        "types": dict(case.types),
        "configuration": {name: recipe.configuration[name] for name in sorted(recipe.configuration)},
        "metric": _known(_rounded(asdict(recipe.metric))) if recipe.metric else None,
        "speedup": _rounded(asdict(speedup)) if speedup else None,
        "defended": recipe.defended,
        "is_default": recipe.is_default,
        "trials": recipe.trials,
        "study": recipe.study,
        "tuned": recipe.tuned,
        "source": recipe.source,
        "folder": recipe.folder,
        "files": list(recipe.files),
        "versions": dict(sorted(recipe.versions.items())),
        "shares": {name: round(share, 3) for name, share in sorted(recipe.shares.items())},
    }
    needed = {*_NEEDED, "defended"}
    return {name: value for name, value in document.items() if name in needed or _says(value)}


def _rounded(document: Mapping[str, Any]) -> dict[str, Any]:
    """``document`` with its numbers rounded to six digits."""
    numbers = {name: value for name, value in document.items() if isinstance(value, (int, float))}
    return {**document, **{name: _six_digits(number) for name, number in numbers.items()}}


def _six_digits(number: float) -> float | None:
    """JSON has no infinity, so an interval without an end has ``null`` there."""
    return float(f"{number:.6g}") if math.isfinite(number) else None


def _known(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value not in (None, "")}


def _says(value: object) -> bool:
    return not (value is None or value is False or value == "" or value == {} or value == [])


class _Reader:
    """Reads the values of one text and collects what is wrong with them."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.problems: list[Problem] = []

    def wrong(self, path: Path, message: str, expected: str = "", hint: str = "") -> None:
        where = Location(self.file, *place_of(self.text, path))
        self.problems.append(Problem(message, where, expected, hint))

    def mapping(
        self, value: Any, path: Path, what: str, right: Callable[[Any], bool] | None = None, each: str = ""
    ) -> dict[str, Any]:
        """``value`` if it is an object, else an empty one. ``right`` accepts its values; ``each`` says what
        they should be."""
        if not isinstance(value, dict):
            self.wrong(path, f"{what} is {_say(value)}", "an object: {...}")
            return {}
        for name, inner in value.items():
            if right is not None and not right(inner):
                self.wrong((*path, name), f"{name!r} of {what} is {_say(inner)}", each)
        return value

    def known(self, value: dict[str, Any], path: Path, names: Collection[str], what: str) -> None:
        for name in value:
            if name not in names:
                hint = nearest(name, names)
                self.wrong((*path, name), f"{what} has no field {name!r}", ", ".join(names), hint)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, float) and math.isfinite(value)


def _number_or_null(value: Any) -> bool:
    return value is None or _number(value)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _plain(value: Any) -> bool:
    """Whether a knob or a fact of a workload can be set to it."""
    if isinstance(value, list):
        return all(map(_plain, value))
    if isinstance(value, dict):
        return all(map(_plain, value.values()))
    return isinstance(value, (bool, str)) or _number(value)


def _goal(value: Any) -> bool:
    return value in ("minimize", "maximize")


def _finite(value: Any) -> bool:
    """Whether it can be written again: Python reads NaN and Infinity, which JSON does not have."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


_PLAIN = "a number, a flag, a text, or a list or an object of these"
_SIMPLE: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (_text, 'a text: "gemm-c"'),
    "device": (_text, 'a text: "NVIDIA H200"'),
    "machine": (_text, "a text"),
    "defended": (_flag, "true or false"),
    "is_default": (_flag, "true or false"),
    "trials": (_count, "a whole number, 0 or more"),
    "study": (_text, 'a text: "gemm-c#1"'),
    "tuned": (_text, 'a day: "2026-11-21"'),
    "source": (_text, "a text"),
    "folder": (_text, "a text"),
    "files": (_texts, "a list of texts"),
}
_OBJECTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "workload": (_plain, _PLAIN),
    "types": (_text, 'a text: "float16"'),
    "configuration": (_plain, _PLAIN),
    "versions": (_text, "a text"),
    "shares": (_number, "a number"),
}
_METRIC: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("name", "unit"), (_text, "a text")),
    **dict.fromkeys(("value", "low", "high"), (_number_or_null, "a number")),
    "goal": (_goal, '"minimize" or "maximize"'),
}
_FIELDS = (*_SIMPLE, *_OBJECTS, "metric", "speedup")
_NEEDED = ("name", "device", "workload", "configuration")


def read_document(text: str, file: str) -> Known:
    """The recipes and spaces of a file's text. Raises :class:`InputError` with everything that is wrong."""
    try:
        document = json.loads(text)
        if _is_deep(document):
            raise RecursionError
    except json.JSONDecodeError as error:
        where = Location(file, error.lineno, error.colno)
        raise InputError(Problem(f"this is not JSON: {error.msg}", where)) from None
    except RecursionError:
        raise InputError(Problem("this is nested too deeply", Location(file))) from None
    except ValueError:  # Python does not parse numbers of more than 4,300 digits
        raise InputError(Problem("a number in it is too long", Location(file))) from None
    expected = f'{{"{MARK}": {FORMAT}, "recipes": [...]}}'
    if not isinstance(document, dict) or not isinstance(document.get("recipes"), list):
        raise InputError(Problem("this is no file of recipes", Location(file, 1, 1), expected))
    reader, version = _Reader(text, file), document.get(MARK)
    if version not in (1, FORMAT) or isinstance(version, bool):
        reader.wrong((MARK,), f"the format of these recipes is {_say(version)}", f"1 or {FORMAT}")
        raise InputError(reader.problems)
    reader.known(document, (), (MARK, "recipes", "spaces"), "a file of recipes")
    recipes = [_recipe(one, ("recipes", n), reader) for n, one in enumerate(document["recipes"])]
    spaces = _spaces(document.get("spaces", {}), reader)
    if reader.problems:
        raise InputError(reader.problems)
    return Known(tuple(recipe for recipe in recipes if recipe is not None), spaces)


def _is_deep(document: Any) -> bool:
    """Whether lists and objects lie more than :data:`MAX_DEPTH` levels inside one another."""
    level = [document]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for one in level
            if isinstance(one, (list, dict))
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return bool(level)


def _recipe(document: Any, path: Path, reader: _Reader) -> Recipe | None:
    """The recipe; ``None`` if something is wrong with it, which is added to the problems of ``reader``."""
    before = len(reader.problems)
    what = f"recipe {path[-1]}"
    own = dict(reader.mapping(document, path, what))
    if isinstance(document, dict):
        own = {_OLDER.get(name, name) if "kernel" in document else name: own[name] for name in own}
        if "kernel" in document and "time" in own:
            own["metric"] = {"name": "time", "value": own.pop("time"), "unit": "s"}
        reader.known(own, path, _FIELDS, what)
        for name in _NEEDED:
            if name not in own:
                reader.wrong(path, f"{what} has no {name!r}", ", ".join(f'"{n}"' for n in _NEEDED))
    for name, (right, expected) in _SIMPLE.items():
        if name in own and not right(own[name]):
            reader.wrong((*path, name), f"{name!r} of {what} is {_say(own[name])}", expected)
    for name, (right, expected) in _OBJECTS.items():
        if name in own:
            reader.mapping(own[name], (*path, name), f"{name!r} of {what}", right, expected)
    metric, speedup = _metric(own, path, reader, what), _speedup(own, path, reader, what)
    if len(reader.problems) > before:
        return None
    case = Case(own.pop("workload"), own.pop("types", {}))
    own |= {"case": case, "metric": metric, "speedup": speedup, "files": tuple(own.get("files", ()))}
    if "kernel" in document:
        own["defended"] = speedup is not None
    return Recipe(**own)


def _metric(own: dict[str, Any], path: Path, reader: _Reader, what: str) -> Metric | None:
    if own.get("metric") is None:
        return None
    path = (*path, "metric")
    found = reader.mapping(own["metric"], path, f"'metric' of {what}")
    reader.known(found, path, _METRIC, f"'metric' of {what}")
    for name, (right, expected) in _METRIC.items():
        if name in found and not right(found[name]):
            reader.wrong((*path, name), f"{name!r} of 'metric' of {what} is {_say(found[name])}", expected)
    if not found.get("name") or not _number(found.get("value")):
        reader.wrong(path, f"'metric' of {what} has no name or no value", '{"name": "time", "value": 0.01}')
        return None
    return Metric(**{name: found[name] for name in _METRIC if name in found})


def _speedup(own: dict[str, Any], path: Path, reader: _Reader, what: str) -> Speedup | None:
    if own.get("speedup") is None:
        return None
    path = (*path, "speedup")
    each = "a number, or null where the interval has no end"
    found = reader.mapping(own["speedup"], path, f"'speedup' of {what}", _number_or_null, each)
    reader.known(found, path, Speedup.__dataclass_fields__, f"'speedup' of {what}")
    if not _number(found.get("estimate")):
        expected = '{"estimate": 1.3, "low": 1.2, "high": 1.4}'
        reader.wrong(path, f"'speedup' of {what} has no estimate", expected)
        return None
    low, high = found.get("low"), found.get("high")
    return Speedup(found["estimate"], 0.0 if low is None else low, math.inf if high is None else high)


def _spaces(document: Any, reader: _Reader) -> dict[str, KnownSpace]:
    spaces = {}
    for name, one in reader.mapping(document, ("spaces",), "'spaces'").items():
        path: Path = ("spaces", name)
        own = reader.mapping(one, path, f"the space {name!r}")
        reader.known(own, path, ("file", "space"), f"the space {name!r}")
        inner = f"'space' of {name!r}"
        space = reader.mapping(own.get("space", {}), (*path, "space"), inner, _finite, "no NaN or Infinity")
        if not _text(own.get("file", "")):
            reader.wrong((*path, "file"), f"'file' of the space {name!r} is {_say(own['file'])}", "a text")
        for part, kind in (("knobs", dict), ("constraints", list), ("workload", dict), ("facts", dict)):
            if isinstance(one, dict) and not isinstance(space.get(part), kind):
                expected = "an object" if kind is dict else "a list"
                reader.wrong((*path, "space"), f"the space {name!r} has no {part!r}", expected)
        spaces[name] = KnownSpace(space, str(own.get("file", "")))
    return spaces


def _say(value: Any) -> str:
    return shorten(json.dumps(value))
