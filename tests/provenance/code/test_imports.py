"""Which files of its own tree a file imports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.provenance.code.imports import local_imports


def tree(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "main.py"


def found(root: Path, files: Mapping[str, str], start: str = "main.py") -> list[str]:
    tree(root, files)
    return [path.relative_to(root).as_posix() for path in local_imports(root / start)]


@pytest.mark.parametrize(
    ("main", "expected"),
    [
        ("import a", ["a.py"]),
        ("import a as b, json", ["a.py"]),
        ("from a import x", ["a.py"]),
        ("import pkg", ["pkg/__init__.py"]),
        ("import pkg.inner.deep", ["pkg/__init__.py", "pkg/inner/__init__.py", "pkg/inner/deep.py"]),
        ("from pkg import inner", ["pkg/__init__.py", "pkg/inner/__init__.py"]),
        (
            "from pkg.inner import deep, nothing",
            ["pkg/__init__.py", "pkg/inner/__init__.py", "pkg/inner/deep.py"],
        ),
        ("from space import part", ["space/part.py"]),
        ("import space.part", ["space/part.py"]),
        ("import space", []),
        ("def late():\n    import a", ["a.py"]),
        ("try:\n    import a\nexcept ImportError:\n    a = None", ["a.py"]),
        ("import numpy, json, os.path", []),
        ("from . import a", ["a.py"]),
        ("from .pkg import inner", ["pkg/__init__.py", "pkg/inner/__init__.py"]),
        ("from ........ import a", []),
        ("import missing.part", []),
        ("import autotune.measure.objective", []),
        ("this is no python", []),
        ("", []),
    ],
)
def test_each_form(tmp_path: Path, main: str, expected: list[str]) -> None:
    files = {
        "a.py": "",
        "pkg/__init__.py": "",
        "pkg/inner/__init__.py": "",
        "pkg/inner/deep.py": "",
        "space/part.py": "",
        "main.py": main,
        ".git/HEAD": "",
    }
    assert found(tmp_path, files) == expected


def test_imports_of_imports_in_a_circle(tmp_path: Path) -> None:
    files = {"main.py": "import a", "a.py": "import b", "b.py": "import a, main, c", "c.py": ""}
    assert found(tmp_path, files) == ["a.py", "b.py", "c.py"]


def test_relative_imports_run_their_package_first(tmp_path: Path) -> None:
    files = {"p/__init__.py": "from . import y", "p/x.py": "from .z import q", "p/y.py": "", "p/z.py": ""}
    assert found(tmp_path, files, "p/x.py") == ["p/__init__.py", "p/y.py", "p/z.py"]


@pytest.mark.parametrize("main", ["import pkg._C", "from pkg._C import gemm", "from pkg.deep._C import gemm"])
def test_the_package_of_a_compiled_module_runs_first(tmp_path: Path, main: str) -> None:
    """The whole package was left out, and an edit of it went unnoticed."""
    compiled = {"pkg/_C.so": "", "pkg/deep/_C.so": ""}
    files = {"pkg/__init__.py": "import a", **compiled, "a.py": "", "main.py": main}
    assert found(tmp_path, files) == ["a.py", "pkg/__init__.py"]


def test_from_the_root_of_the_project(tmp_path: Path) -> None:
    files = {"pyproject.toml": "", "lib/help.py": "", "objectives/x.py": "from lib.help import f"}
    assert found(tmp_path, files, "objectives/x.py") == ["lib/help.py"]


def test_from_the_folder_src_of_the_project(tmp_path: Path) -> None:
    """An edit of the package that a benchmark beside it measures had gone unnoticed."""
    files = {
        "pyproject.toml": "",
        "src/lib/__init__.py": "",
        "src/lib/help.py": "from lib.deep import g",
        "src/lib/deep.py": "",
        "bench/x.py": "from lib.help import f",
    }
    expected = ["src/lib/__init__.py", "src/lib/deep.py", "src/lib/help.py"]
    assert found(tmp_path, files, "bench/x.py") == expected


def test_not_beyond_the_project(tmp_path: Path) -> None:
    files = {"outside.py": "", "project/.git/HEAD": "", "project/x.py": "import outside"}
    assert found(tmp_path, files, "project/x.py") == []
    loose = {"outside.py": "", "folder/x.py": "import outside"}
    assert found(tmp_path / "loose", loose, "folder/x.py") == [], "without a project: only beside the file"


def test_the_standard_library_hides_what_lies_further_up(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "",
        "json.py": "",
        "o/x.py": "import json",
        "o/types.py": "",
        "o/y.py": "import types",
    }
    assert found(tmp_path, files, "o/x.py") == []
    assert found(tmp_path, files, "o/y.py") == ["o/types.py"], "but not what lies beside the script"


def test_a_name_that_is_too_long_for_a_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(f"import {'a' * 300}\nfrom b import {'c' * 300}\nimport near\n")
    (tmp_path / "b").mkdir()
    (tmp_path / "near.py").touch()
    assert local_imports(tmp_path / "main.py") == (tmp_path / "near.py",)


def test_a_missing_file_imports_nothing(tmp_path: Path) -> None:
    assert local_imports(tmp_path / "no.py") == ()


def test_bytes_that_are_no_python(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_bytes(b"\xff\xfe\0import a")
    assert local_imports(tmp_path / "main.py") == ()


@pytest.mark.filterwarnings("error")
def test_what_python_would_warn_of_is_read_in_silence(tmp_path: Path) -> None:
    assert found(tmp_path, {"main.py": "import a\nx = '\\d'", "a.py": ""}) == ["a.py"]


def test_a_tower_of_brackets(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("x = " + "(" * 5000 + ")" * 5000)
    assert local_imports(tmp_path / "main.py") == ()


@given(
    st.lists(st.sampled_from(["import a", "import b", "from a import c", "x = 1", "import ("]), max_size=6)
)
def test_no_text_breaks_it(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    folder = tmp_path_factory.mktemp("tree")
    main = tree(folder, {"main.py": "\n".join(lines), "a.py": "", "b.py": ""})
    assert set(local_imports(main)) <= {folder / "a.py", folder / "b.py"}
