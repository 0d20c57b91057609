"""autotune finds the fastest correct setting of a system's knobs by measuring it, and can prove how it knows.

::

    import autotune
    result = autotune.search("space.yaml", trials=100)
    print(result.best, result.speedup)

Everything here is loaded when it is first used, so that the import costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.cli.progress import LineProgress
    from autotune.errors import AutotuneError, InputError, StoreError
    from autotune.hook.kernel import kernel
    from autotune.hook.recipe import recipe
    from autotune.hook.run import run
    from autotune.hook.tuning import tuning
    from autotune.measure.kernels.array_objective import ArrayObjective
    from autotune.measure.objective import (
        Baseline,
        Code,
        Context,
        Diverged,
        Infeasible,
        Lost,
        Objective,
        OutOfMemory,
        WrongAnswer,
    )
    from autotune.measure.readings import Sample
    from autotune.measure.reports import Reporter
    from autotune.report.words.shapes import summarize_many
    from autotune.report.words.summary import summarize
    from autotune.session.api import ask_tell, search, search_many
    from autotune.session.asktell import AskTell
    from autotune.session.families.result import ManyResult
    from autotune.session.progress import Progress
    from autotune.session.result import Result
    from autotune.space.configuration import Configuration
    from autotune.space.reading.reader import read_spec
    from autotune.space.space import Space
    from autotune.space.spec import (
        Budget,
        EarlyStopping,
        MeasureSettings,
        MetricSpec,
        SearchSettings,
        StudySpec,
    )
    from autotune.status import Status

__version__ = "0.1.0"

_HOME = {
    "AutotuneError": "autotune.errors",
    "InputError": "autotune.errors",
    "StoreError": "autotune.errors",
    "kernel": "autotune.hook.kernel",
    "run": "autotune.hook.run",
    "recipe": "autotune.hook.recipe",
    "tuning": "autotune.hook.tuning",
    "ArrayObjective": "autotune.measure.kernels.array_objective",
    "Baseline": "autotune.measure.objective",
    "Code": "autotune.measure.objective",
    "Context": "autotune.measure.objective",
    "Diverged": "autotune.measure.objective",
    "Infeasible": "autotune.measure.objective",
    "Lost": "autotune.measure.objective",
    "Objective": "autotune.measure.objective",
    "OutOfMemory": "autotune.measure.objective",
    "WrongAnswer": "autotune.measure.objective",
    "Sample": "autotune.measure.readings",
    "Reporter": "autotune.measure.reports",
    "summarize": "autotune.report.words.summary",
    "summarize_many": "autotune.report.words.shapes",
    "LineProgress": "autotune.cli.progress",
    "ask_tell": "autotune.session.api",
    "search_many": "autotune.session.api",
    "AskTell": "autotune.session.asktell",
    "ManyResult": "autotune.session.families.result",
    "Result": "autotune.session.result",
    "Progress": "autotune.session.progress",
    "Configuration": "autotune.space.configuration",
    "read_spec": "autotune.space.reading.reader",
    "Space": "autotune.space.space",
    "Budget": "autotune.space.spec",
    "EarlyStopping": "autotune.space.spec",
    "MeasureSettings": "autotune.space.spec",
    "MetricSpec": "autotune.space.spec",
    "SearchSettings": "autotune.space.spec",
    "StudySpec": "autotune.space.spec",
    "Status": "autotune.status",
}
"""Where each public name lives. The knob classes are in :mod:`autotune.space`."""


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'autotune' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*_HOME, "search", "__version__"])


class _Package(ModuleType):
    """Keeps ``autotune.search`` the function.

    There is a folder of that name, and whoever imports it would put the module in the function's
    place. ``from autotune.search import ...`` finds the folder as ever.
    """

    @property
    def search(self) -> Any:
        return importlib.import_module("autotune.session.api").search

    @search.setter
    def search(self, module: ModuleType) -> None:
        pass


sys.modules[__name__].__class__ = _Package


__all__ = [
    "ArrayObjective",
    "AskTell",
    "AutotuneError",
    "Baseline",
    "Budget",
    "Code",
    "Configuration",
    "Context",
    "Diverged",
    "EarlyStopping",
    "Infeasible",
    "InputError",
    "LineProgress",
    "Lost",
    "ManyResult",
    "MeasureSettings",
    "MetricSpec",
    "Objective",
    "OutOfMemory",
    "Progress",
    "Reporter",
    "Result",
    "Sample",
    "SearchSettings",
    "Space",
    "Status",
    "StoreError",
    "StudySpec",
    "WrongAnswer",
    "__version__",
    "ask_tell",
    "kernel",
    "read_spec",
    "recipe",
    "run",
    "search",
    "search_many",
    "summarize",
    "summarize_many",
    "tuning",
]
