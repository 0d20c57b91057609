"""What a source takes from other files of its package is what running it gives, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.interop.space_files.triton_configs import convert

KERNEL = """
import triton
{imports}

@triton.autotune({configs}, key=["n"])
@triton.jit
def kernel(x, n, A):
    pass
"""

SIZES = """
from triton import Config
BASE = [1, 2]
def few(scale=1):
    return [Config({"A": a * scale}) for a in BASE]
"""


def package(folder: Path, files: dict[str, str]) -> Path:
    """Writes the files of a package ``ops``; a folder of it becomes a package of its own."""
    for name, text in {"__init__.py": "", **files}.items():
        file = folder / "ops" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        (file.parent / "__init__.py").touch()
    return folder / "ops" / "kernels.py"


def sizes(folder: Path, imports: str, configs: str = "few()", **files: str) -> list[object]:
    """The values of A, in the order of a space, where ``files`` lie beside the kernel: ``deep_init``."""
    text = KERNEL.format(imports=imports, configs=configs)
    placed = {
        f"{name.replace('deep_', 'deep/').replace('init', '__init__')}.py": files[name] for name in files
    }
    source = package(folder, {**placed, "kernels.py": text})
    return [c["A"] for c in convert(source).checked().feasible]


@pytest.mark.parametrize(
    ("imports", "configs"),
    [
        ("from .sizes import few", "few()"),
        ("from .sizes import few as some", "some(scale=1)"),
        ("from ops.sizes import few", "few()"),
        ("from . import sizes", "sizes.few()"),
        ("from . import sizes as s", "s.few()"),
        ("import ops.sizes", "ops.sizes.few()"),
        ("import ops.sizes as s", "s.few()"),
        ("from .sizes import *", "few()"),
        ("from .sizes import BASE", "[triton.Config({'A': a}) for a in BASE]"),
        ("from . import sizes", "[triton.Config({'A': a}) for a in sizes.BASE]"),
        ("def own():\n    from .sizes import few\n    return few()", "own()"),
        ("BASE = [7]\nfrom .sizes import few", "few()"),  # the function has the names of its own file
        ("from .sizes import few\nBASE = [7]", "few()"),
        ("if True:\n    from .sizes import few", "few()"),
    ],
)
def test_a_list_of_another_file_is_found_however_that_is_imported(
    tmp_path: Path, imports: str, configs: str
) -> None:
    assert sizes(tmp_path, imports, configs, sizes=SIZES) == [1, 2]


def test_what_was_read_beside_the_source_is_noted(tmp_path: Path) -> None:
    text = KERNEL.format(imports="from .sizes import few", configs="few()")
    source = package(tmp_path, {"sizes.py": SIZES, "kernels.py": text})
    assert "sizes.py was read too: few." in convert(source).notes


def test_names_that_packages_only_pass_on_are_followed_to_where_they_are_made(tmp_path: Path) -> None:
    files = {
        "init": "from .deep import few",
        "deep_init": "from .sizes import *",
        "deep_sizes": SIZES.replace("BASE = ", "from ..base import BASE  # ").replace("[1, 2]", ""),
        "base": "BASE = [4, 8]",
    }
    for imports in (
        "from . import few",
        "from ops import few",
        "from .deep import few",
        "from .deep import *",
    ):
        assert sizes(tmp_path, imports, **files) == [4, 8]
    assert sizes(tmp_path, "import ops.deep.sizes", "ops.deep.sizes.few()", **files) == [4, 8]
    assert sizes(tmp_path, "import ops", "ops.deep.few()", **files) == [4, 8]


def test_a_package_may_name_a_function_as_the_file_that_it_is_in(tmp_path: Path) -> None:
    files = {"init": "from .few import few", "few": SIZES}
    assert sizes(tmp_path, "from . import few", **files) == [1, 2]
    with pytest.raises(InputError, match=r"few\(\).*is not understood"):  # which of the two is not sure
        sizes(tmp_path, "from . import few", **{**files, "init": "def few(): return []"})


def test_files_beside_a_source_that_is_in_no_package_are_followed(tmp_path: Path) -> None:
    source = tmp_path / "kernels.py"
    (tmp_path / "sizes.py").write_text(SIZES)
    source.write_text(KERNEL.format(imports="from sizes import few", configs="few()"))
    assert [c["A"] for c in convert(source).checked().feasible] == [1, 2]
    moved = "import sys\nsys.path.insert(0, '/elsewhere')\nfrom sizes import few"
    source.write_text(KERNEL.format(imports=moved, configs="few()"))
    with pytest.raises(InputError, match="is not understood"):
        convert(source)


def test_a_module_whose_name_is_too_long_for_a_file_is_not_there(tmp_path: Path) -> None:
    """The conversion had ended with the operating system's words, without a place in the source."""
    far = "far" * 100
    assert sizes(tmp_path, f"from {far} import few as other\nfrom .sizes import few", sizes=SIZES) == [1, 2]
    with pytest.raises(InputError, match=r"kernels.py:5:\d+: .*other.* is not understood"):
        sizes(tmp_path, f"from .{far} import other", "other()", sizes=SIZES)


def test_shared_lists_are_the_same_list_in_all_files(tmp_path: Path) -> None:
    found = sizes(
        tmp_path,
        "from .more import few",
        sizes=SIZES,
        more="from .sizes import BASE, few as some\ndef few(): return some(len(BASE))",
    )
    assert found == [2, 4]


REFUSED = {
    "a function of it changes it": ("from .sizes import few", SIZES + "def add(n): BASE.append(n)\n", {}),
    "through another name": ("from .sizes import few", SIZES + "B = BASE\ndef add(n): B.append(n)\n", {}),
    "a part of it": (
        "from .sizes import few",
        SIZES.replace("[1, 2]", "{1: [1]}").replace("in BASE", "in BASE[1]")
        + "def add(n): BASE.get(1).append(n)\n",
        {},
    ),
    "global": ("from .sizes import few", SIZES + "def put(n):\n    global BASE\n    BASE = n\n", {}),
    "a method": (
        "from .sizes import few",
        SIZES + "class C:\n    def put(self, n): BASE.append(n)\n",
        {},
    ),
    "another file": (
        "from .sizes import few",
        SIZES,
        {"third": "from .sizes import BASE\nBASE.append(64)"},
    ),
    "another file by its module": (
        "from .sizes import few",
        SIZES,
        {"third": "from . import sizes\nsizes.BASE = [64]"},
    ),
    "another file by a function": (
        "from .sizes import few",
        SIZES,
        {"third": "from ops import sizes as s\ndef more():\n    for b in [1]:\n        s.BASE.append(b)"},
    ),
    "another file puts a function there": (
        "from .sizes import few",
        SIZES,
        {"third": "import ops.sizes\nops.sizes.few = None"},
    ),
    "another file under another name": (
        "from .sizes import few",
        SIZES,
        {"third": "from .sizes import BASE as b\nc = b\nc += [64]"},
    ),
    "this file": ("from .sizes import few, BASE\nBASE.append(3)", SIZES, {}),
    "this file in a function": (
        "from .sizes import few, BASE\ndef add():\n    BASE.append(3)\nadd()",
        SIZES,
        {},
    ),
    "a circle": (
        "from .sizes import few\nMORE = [1]",
        SIZES.replace("BASE = [1, 2]", "from .kernels import MORE as BASE"),
        {},
    ),
    "a circle of the list itself": (
        "from .sizes import few",
        SIZES.replace("BASE = [1, 2]", "from .more import BASE"),
        {"more": "from .sizes import BASE"},
    ),
    "half done where it is imported": (
        "from .sizes import few",
        SIZES + "from .more import x\nBASE = [9]\n",
        {"more": "x = 1"},
    ),
    "an import that may fail": (
        "try:\n    from .sizes import few\nexcept ImportError:\n    few = None",
        SIZES,
        {},
    ),
    "a condition that is not known": (
        "from elsewhere import FLAG\nif FLAG:\n    from .sizes import few\nelse:\n    from .more import few",
        SIZES,
        {"more": SIZES},
    ),
    "a list that is not understood": (
        "from .sizes import few",
        SIZES.replace("[1, 2]", "unknown()"),
        {},
    ),
    "made anew, and unknown": ("from .sizes import few", SIZES + "BASE = unknown()\n", {}),
    "changed later, and unknown": ("from .sizes import few", SIZES + "if unknown():\n    BASE += [3]\n", {}),
    "globals": ("from .sizes import few", SIZES + "globals().update(BASE=[3])\n", {}),
    "another module in its place": (
        "from .sizes import few",
        "import sys\n" + SIZES + "sys.modules[__name__] = 1\n",
        {},
    ),
    "a package that makes its names": (
        "from . import few",
        SIZES,
        {"init": "def __getattr__(name):\n    return 1", "few": SIZES},
    ),
    "compiled": ("from .fast import few", SIZES, {}),
    "a decorator around it": (
        "from .sizes import few",
        SIZES.replace("def few", "def d(f): return lambda: []\n@d\ndef few"),
        {},
    ),
    "shadowed": ("from .sizes import few\ndef few(): return unknown()", SIZES, {}),
    "shadowed by an import": ("from .sizes import few\nfrom elsewhere import few", SIZES, {}),
    "another package": ("from other.sizes import few", SIZES, {}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_may_be_otherwise_when_it_runs_is_refused(tmp_path: Path, case: str) -> None:
    imports, text, others = REFUSED[case]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sizes.py").write_text(SIZES)
    package(tmp_path, {"fast.py": SIZES})
    (tmp_path / "ops" / "fast.cpython-311-x86_64-linux-gnu.so").touch()
    with pytest.raises(InputError, match="is not understood") as raised:
        sizes(tmp_path, imports, sizes=text, **others)
    assert "--run" in str(raised.value)


@pytest.mark.parametrize(
    ("imports", "found"),
    [
        ("few = None\nfrom .sizes import few", [1, 2]),
        ("few = None\nfrom .sizes import *", [1, 2]),
        ("from .sizes import *\ndef few(): return [triton.Config({'A': 5})]", [5]),
        ("from .sizes import few\nfrom .more import few", [3, 6]),
        ("from .sizes import *\nfrom .more import *", [3, 6]),
        ("from .more import *\nfrom .sizes import few", [1, 2]),
        ("from .sizes import few\ndef inner():\n    from .more import few", [1, 2]),
        ("from .sizes import few\nclass C:\n    from .more import few", [1, 2]),
        ("from .listed import *\nfrom .sizes import few as hidden", [1, 2]),
    ],
)
def test_of_two_of_a_name_the_later_is_meant(tmp_path: Path, imports: str, found: list[int]) -> None:
    more = SIZES.replace("[1, 2]", "[3, 6]")
    listed = "__all__ = ['few']\nfrom .sizes import few\nhidden = 1\n"
    assert sizes(tmp_path, imports, sizes=SIZES, more=more, listed=listed) == found


def test_what_reads_a_table_does_not_change_it(tmp_path: Path) -> None:
    table = """
from triton import Config
TABLE = {"few": [1, 2], "more": [4]}
def few(name="few"):
    found = []
    for a in TABLE.get(name, []):
        found.append(Config({"A": a}))
    return found
def names(): return [*TABLE.keys()]
"""
    assert sizes(tmp_path, "from .sizes import few", sizes=table) == [1, 2]


def test_a_device_is_assumed_before_another_file_is_read(tmp_path: Path) -> None:
    asked = "import torch\ndef is_hip(): return torch.version.hip is not None\nIS_AMD = unknown()\n"
    imports = "from .sizes import few, IS_AMD, is_hip"
    found = sizes(tmp_path, imports, "few(3 if IS_AMD or is_hip() else 2)", sizes=SIZES + asked)
    assert found == [2, 4]


def test_a_configuration_of_the_package_s_own_is_none_of_triton(tmp_path: Path) -> None:
    own = "import triton\ndef Config(kwargs):\n    return triton.Config({'A': kwargs['A'] * 2})\n"
    listed = "[Config({'A': a}) for a in (1, 2)]"
    assert sizes(tmp_path, own.replace("import triton\n", ""), listed) == [2, 4]
    assert sizes(tmp_path, "from .own import Config", listed, own=own) == [2, 4]
