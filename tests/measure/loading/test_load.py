"""Loading objectives: every mistake has its message, and what works works in any process."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.measure.loading.load import load_objective, make_objective
from autotune.measure.objective import Context, Objective
from autotune.space.configuration import Configuration, FrozenMap
from autotune.space.spec import PythonObjective

Load = Callable[..., Objective]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def run(
        text: str, name: str = "measure", knobs: tuple[str, ...] = (), file: str = "objective.py"
    ) -> Objective:
        (tmp_path / file).write_text(text)
        context = Context(FrozenMap({"n": 3}), {}, tmp_path)
        return load_objective(PythonObjective(f"{file}:{name}", tmp_path), context, knobs=knobs)

    return run


def reading(objective: Objective, **knobs: object) -> object:
    return objective.measure(
        objective.load(objective.prepare(Configuration(knobs))), np.random.default_rng(0)
    )


def test_a_function_is_called_with_the_knobs(load: Load) -> None:
    objective = load("def measure(a, b=2): return a * b", knobs=("a", "b"))
    assert reading(objective, a=4, b=3) == 12
    assert reading(objective, a=4) == 8, "an inactive knob keeps the function's default"
    assert not objective.prepares


def test_a_mapping_is_a_dictionary_of_the_calls_own(load: Load) -> None:
    """As libraries ask for: pandas and json take no other mapping."""
    text = """
import json
def measure(kinds, shapes, workload):
    text = json.dumps([kinds, shapes, workload])
    kinds["a"].popitem()
    return text
"""
    objective = load(text, knobs=("kinds", "shapes"))
    for _ in range(2):
        said = reading(objective, kinds={"a": {"b": "int32"}}, shapes=[{"c": 1}, 2])
        assert said == '[{"a": {"b": "int32"}}, [{"c": 1}, 2], {"n": 3}]'


def test_a_parameter_that_a_configuration_lacks_is_named(load: Load) -> None:
    objective = load("def measure(a, b, c): return a * b * c", knobs=("a", "b", "c"))
    with pytest.raises(TypeError, match=r"needs 'b', 'c', which .* a 'when' a default, b=None say"):
        reading(objective, a=4)


@pytest.mark.parametrize("name", ["configuration", "config"])
def test_a_function_of_the_configuration(load: Load, name: str) -> None:
    objective = load(f"def measure({name}): return {name}['a'] + 1", knobs=("a", "b"))
    assert reading(objective, a=4, b=3) == 5


def test_a_parameter_with_the_name_of_a_fact_of_the_workload_is_given_it(load: Load) -> None:
    assert reading(load("def measure(a, n): return a * n", knobs=("a",)), a=4) == 12
    assert reading(load("def measure(a, n=1): return a * n", knobs=("a",)), a=4) == 12
    assert reading(load("def measure(config, n): return config['a'] * n", knobs=("a",)), a=4) == 12
    both = load("def measure(a, *, n=1, workload): return a * n * workload['n']", knobs=("a",))
    assert reading(both, a=4) == 36


def test_a_knob_hides_a_fact_of_the_workload_also_where_it_is_inactive(load: Load) -> None:
    objective = load("def measure(a, n=1): return a * n", knobs=("a", "n"))
    assert (reading(objective, a=4, n=5), reading(objective, a=4)) == (20, 4)


def test_code_that_is_edited_within_a_second_is_the_new_code(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    first = load("def measure(x): return 1.0")
    second = load("def measure(x): return 2.0")
    assert (reading(first, x=0), reading(second, x=0)) == (1.0, 2.0)
    assert not (tmp_path / "__pycache__").exists() and sys.dont_write_bytecode is False


def test_a_knob_may_be_called_config(load: Load) -> None:
    assert reading(load("def measure(config): return config", knobs=("config",)), config=7) == 7


def test_a_function_may_ask_for_the_workload(load: Load) -> None:
    assert reading(load("def measure(a, workload): return a * workload['n']", knobs=("a",)), a=4) == 12
    assert reading(load("def measure(config, workload): return workload['n']", knobs=("a",)), a=4) == 3


def test_a_function_of_anything(load: Load) -> None:
    assert reading(load("def measure(**knobs): return len(knobs)", knobs=("a", "b")), a=1, b=2) == 2


def test_what_lies_beside_the_objective_can_be_imported(load: Load, tmp_path: Path) -> None:
    (tmp_path / "autotune_test_helper.py").write_text("VALUE = 5")
    path = list(sys.path)
    objective = load("import autotune_test_helper as h\ndef measure(a): return h.VALUE")
    assert reading(objective, a=1) == 5
    assert sys.path == path, "nothing stays on the path"


def test_an_objective_may_put_the_path_in_order(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert reading(load("import sys\nsys.path.pop(0)\ndef measure(a): return a"), a=1) == 1


def test_a_class_is_made_with_its_context(load: Load, tmp_path: Path) -> None:
    objective = load(
        "import autotune\n"
        "class Mine(autotune.Objective):\n"
        "    def prepare(self, configuration): return configuration\n"
        "    def measure(self, loaded, rng): return self.context.workload['n']\n",
        name="Mine",
    )
    assert objective.prepares and reading(objective, a=1) == 3


def test_dataclasses_of_the_file_can_be_pickled(load: Load) -> None:
    objective = load(
        "from __future__ import annotations\n"
        "import autotune\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Made:\n    path: str\n"
        "class Mine(autotune.Objective):\n"
        "    def prepare(self, configuration): return Made('x')\n"
        "    def measure(self, loaded, rng): return 1.0\n",
        name="Mine",
    )
    made = objective.prepare(Configuration({}))
    assert pickle.loads(pickle.dumps(made)) == made


def test_two_files_of_one_name_do_not_mix(load: Load, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first = load("def measure(a): return 1")
    second = load("def measure(a): return 2", file="other/objective.py")
    assert (reading(first, a=0), reading(second, a=0)) == (1, 2)


def test_a_folder_whose_name_is_no_utf8(load: Load, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    (tmp_path / name).mkdir()
    assert reading(load("def measure(a): return a", file=f"{name}/objective.py"), a=3) == 3


def test_a_module_on_the_path(tmp_path: Path) -> None:
    package = tmp_path / "autotune_test_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "kernels.py").write_text("def measure(a): return a")
    context = Context({}, {}, tmp_path)
    objective = load_objective(PythonObjective("autotune_test_package.kernels:measure", tmp_path), context)
    assert reading(objective, a=3) == 3


def test_a_file_of_a_package_in_a_package_is_to_be_named_in_full(load: Load, tmp_path: Path) -> None:
    """It had been told to be named from its own folder, where no space file lies that would find it."""
    (tmp_path / "outer/inner").mkdir(parents=True)
    for folder in ("outer", "outer/inner"):
        (tmp_path / folder / "__init__.py").touch()
    with pytest.raises(InputError, match=r"module of its package, outer\.inner\.objective:NAME"):
        load("from .b import c", file="outer/inner/objective.py")


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        ("def measure(a:\n  pass", "measure", r"objective\.py:1:\d+: .*def measure\(a:"),
        ("x = 1\n\nraise ValueError('no')", "measure", r"objective\.py:3: ValueError on import: no"),
        ("import sys\nsys.exit(1)", "measure", r"objective\.py:2: SystemExit on import: 1"),
        (
            "import not_a_module_of_anybody",
            "measure",
            r"objective\.py:1: the objective needs the module 'not_a_mod",
        ),
        ("from .b import c", "measure", r"relative import(.|\n)*module of its package, .+\.objective:NAME"),
        (
            "def measur(a): return 1",
            "measure",
            r"has no 'measure'\n  expected: measur\n  did you mean 'measur'",
        ),
        (
            "measure = 3",
            "measure",
            r"3 is no objective\n  expected: a subclass of autotune\.Objective, or a func",
        ),
        (
            "async def measure(a): return 1",
            "measure",
            r"measure\(\) makes a coroutine, which measures nothing",
        ),
        (
            "class Async:\n  async def __call__(self, a): return 1\nmeasure = Async()",
            "measure",
            r"Async\(\) makes a coroutine, which measures nothing",
        ),
        (
            "import autotune\nclass measure(autotune.Objective):\n  def measure(self, l, r): yield 1",
            "measure",
            r"measure\(\) makes a generator",
        ),
        ("class measure: pass", "measure", r"the class measure is no objective"),
        (
            "import autotune\nclass measure(autotune.Objective): pass",
            "measure",
            r"does not define measure\(\)",
        ),
        (
            "import autotune\nclass measure(autotune.Objective):\n  def __init__(self, c):\n"
            "    c.workload['m']\n"
            "  def measure(self, l, r): return 1",
            "measure",
            r"objective\.py:4: measure\(\) cannot be made: KeyError: 'm'",
        ),
        (
            "import autotune\nclass measure(autotune.Objective):\n  def __init__(self, c):\n"
            "    raise autotune.Lost('no connection')\n"
            "  def measure(self, l, r): return 1",
            "measure",
            r"objective\.py: measure\(\) cannot be made for now: no connection\n  search again",
        ),
        (
            "import autotune\nclass measure(autotune.Objective):\n"
            "  def __init__(self, c): raise autotune.Infeasible('only float32')\n"
            "  def measure(self, l, r): return 1",
            "measure",
            r"measure refuses this workload: only float32",
        ),
        (
            "import autotune\nclass measure(autotune.Objective):\n"
            "  def prepare(self, configuration, *more): return 1\n"
            "  def check(self, loaded): return {}\n"
            "  def measure(self): return 1\n",
            "measure",
            r"objective\.py:4: measure\.check\(self, loaded\) does not take what it is called with\n"
            r"  expected: def check\(self, loaded, rng\)\n"
            r"(.|\n)*objective\.py:5: measure\.measure\(self\) does not take",
        ),
    ],
)
def test_mistakes_in_the_file(load: Load, text: str, name: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        load(text, name)


@pytest.mark.parametrize(
    ("signature", "says"),
    [
        ("tile", r"needs 'tile', and no knob or workload .*\n  expected: tile_m, tile_n, n\n  did you"),
        ("tile_m, tile_m_n=1", r"has no parameter for the knob 'tile_n'"),
        ("tile_m, tile_n, /", r"takes 'tile_m' by position only"),
        ("", r"has no parameter for the knob 'tile_m'"),
    ],
)
def test_parameters_that_do_not_fit_the_knobs(load: Load, signature: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        load(f"def measure({signature}): return 1", knobs=("tile_m", "tile_n"))


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("missing.py:measure", "there is no objective file .*missing.py"),
        ("x" * 300 + ".py:measure", "there is no objective file .*xxx.py"),
        ("x" * 300 + ":measure", "there is no Python module 'xxx"),
        ("no_such_module_here:measure", "there is no Python module 'no_such_module_here'"),
        ("objective.py", "'objective.py' does not name an objective"),
        ("objective.py:not a name", "does not name an objective"),
    ],
)
def test_mistakes_in_the_target(tmp_path: Path, target: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_objective(PythonObjective(target, tmp_path), Context({}, {}, tmp_path))


def test_a_misspelt_file_has_a_neighbour(tmp_path: Path) -> None:
    (tmp_path / "objective.py").write_text("")
    with pytest.raises(InputError, match=r"did you mean 'objective\.py'"):
        load_objective(PythonObjective("objectiv.py:f", tmp_path), Context({}, {}, tmp_path))


def test_an_instance_is_given_the_context_of_each_search(tmp_path: Path) -> None:
    objective = make_objective(lambda a: a, Context({}, {}, tmp_path))
    context = Context(FrozenMap({"n": 3}), {}, tmp_path)
    assert make_objective(objective, context) is objective
    assert objective.context is context


class WithData(Objective):
    def __init__(self, data: object) -> None:
        self.data = data

    def measure(self, loaded: object, rng: object) -> float:
        return 1.0


@pytest.mark.parametrize("found", [WithData, WithData(3)])
def test_an_init_that_does_not_call_ours_leaves_no_objective_without_context(
    found: object, tmp_path: Path
) -> None:
    """Each trial crashed: there was no attribute 'context'."""
    context = Context({}, {}, tmp_path)
    assert make_objective(found, context).context is context


SEARCHES = """
import autotune
from autotune.space import Flag, Space

def measure(a):
    return 1.0

if SEARCH:
    autotune.search(Space([Flag("a")]), objective=measure, trials=1, store=STORE)
"""


def test_a_search_that_begins_as_its_objective_is_imported_is_refused(load: Load, tmp_path: Path) -> None:
    """A script that defines and searches, as Optuna's do: each worker began a search with workers of its own,
    without an end and without a word."""
    text = SEARCHES.replace("STORE", repr(str(tmp_path / "study.db")))
    said = (
        r"objective\.py:9: .*a search begins whenever objective\.py is imported.*if __name__ == '__main__':"
    )
    with pytest.raises(InputError, match=said):
        load(text.replace("SEARCH", "True"), knobs=("a",))
    with pytest.raises(InputError, match=said):
        load(text.replace("SEARCH", "True").replace("search(", "search_many("), knobs=("a",))
    assert not (tmp_path / "study.db").exists()
    assert reading(load(text.replace("SEARCH", "__name__ == '__main__'"), knobs=("a",)), a=True) == 1.0
    inside = text.replace("if SEARCH:", "def search():") + "    return 2.0\n"
    objective = load(inside, "search")
    assert reading(objective) == 2.0, "an objective may search while it measures"
