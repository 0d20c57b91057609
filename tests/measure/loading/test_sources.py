"""Which files an objective is made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.measure.loading.sources import source_files
from autotune.space.spec import CommandObjective, PythonObjective


def made(folder: Path, *names: str) -> None:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"\x7fELF\0\0" if name == "bench" else b"text\n")


def sources(folder: Path, *run: str, **others: object) -> list[str]:
    objective = CommandObjective(tuple(run), folder, **others)  # type: ignore[arg-type]
    return [str(path.relative_to(folder.resolve())) for path in source_files(objective)]


def test_what_the_words_of_a_command_name(tmp_path: Path) -> None:
    made(tmp_path, "run.sh", "data.txt", "other.txt", "check.py")
    assert sources(tmp_path, "./run.sh", "{x}", "data.txt", check=("python", "check.py")) == [
        "run.sh",
        "data.txt",
        "check.py",
    ]


def test_what_a_text_for_a_shell_names(tmp_path: Path) -> None:
    made(tmp_path, "run.sh", "late.sh")
    assert sources(tmp_path, "sh", "-c", "./run.sh {m} | tail -1; ./late.sh") == ["run.sh", "late.sh"]
    assert sources(tmp_path, "sh", "-c", "echo 'it") == []
    longer_than_a_name = "echo " + "x" * 300
    assert sources(tmp_path, "sh", "-c", f"{longer_than_a_name}; ./late.sh") == ["late.sh"]


@pytest.mark.parametrize(
    "run",
    [
        ("bash", "-c", "cd sub && python train.py --a {a}"),
        ("sh", "-c", "cd sub; exec python train.py"),
        ("bash", "-c", "cd sub/deep && cd .. && python train.py"),
        ("env", "-C", "sub", "python", "train.py"),
        ("sh", "-c", "cd 'sub'&&python train.py -C " + "x" * 300),
        ("env", "--chdir=sub", "python", "-m", "train"),
    ],
)
def test_what_is_named_from_another_folder(tmp_path: Path, run: tuple[str, ...]) -> None:
    """Such a script could be edited without anybody noticing, and its earlier results counted."""
    made(tmp_path, "sub/train.py", "sub/model.py", "sub/deep/other.py", "model.py")
    (tmp_path / "sub/train.py").write_text("import model\n")
    assert sources(tmp_path, *run) == ["sub/train.py", "sub/model.py"]


def test_a_python_module_and_what_it_imports(tmp_path: Path) -> None:
    made(tmp_path, "tool/__main__.py", "bench.py", "helper.py")
    (tmp_path / "bench.py").write_text("import helper\n")
    assert sources(tmp_path, "python", "-m", "tool") == ["tool/__main__.py"]
    assert sources(tmp_path, "python", "-m", "bench") == ["bench.py", "helper.py"]


def test_what_is_built_is_no_source_but_what_it_is_built_from(tmp_path: Path) -> None:
    made(tmp_path, "bench", "bench.c", "Makefile", "notes.txt")
    make = ("make", "bench", "TILE={tile}")
    assert sources(tmp_path, "./bench") == ["bench"]
    assert sources(tmp_path, "./bench", prepare=make) == ["Makefile", "bench.c"]
    assert sources(tmp_path, "./bench", prepare=("gcc", "bench.c")) == ["bench.c"]


def test_what_a_source_includes_belongs_to_it(tmp_path: Path) -> None:
    """An edit of a header had gone unnoticed, and what was measured before it counted."""
    made(tmp_path, "bench.c", "kernel.h", "parts/inner.h", "parts/other.h", "unused.h", "run.sh", "lib.sh")
    (tmp_path / "bench.c").write_text('#include <stdio.h>\n#include "kernel.h"\n# include "absent.h"\n')
    (tmp_path / "kernel.h").write_text('#pragma once\n  #include "parts/inner.h"\n')
    (tmp_path / "parts/inner.h").write_text('#include "other.h"\n#include "../kernel.h"\n')
    compiled = ["bench.c", "kernel.h", "parts/inner.h", "parts/other.h"]
    assert sources(tmp_path, "./bench", prepare=("gcc", "bench.c")) == compiled
    (tmp_path / "run.sh").write_text('set -e\n. ./lib.sh\nsource "$HOME/x.sh"\necho . unused.h\n')
    assert sources(tmp_path, "sh", "run.sh") == ["run.sh", "lib.sh"]


@pytest.mark.parametrize(
    "prepare",
    [
        ("make", "-C", "../src", "TILE={tile}"),
        ("make", "--directory=../src"),
        ("sh", "-c", "cd ../src && make TILE={tile}"),
        ("sh", "-c", "make -s -C ../src OUT=$AUTOTUNE_FOLDER"),
    ],
)
def test_make_in_another_folder_builds_from_what_is_there(tmp_path: Path, prepare: tuple[str, ...]) -> None:
    """A source that was edited there went unnoticed: its old results were taken for those of the new one."""
    made(tmp_path, "src/bench.c", "src/Makefile", "src/notes.txt", "tune/plot.py")
    objective = CommandObjective(("../src/bench",), tmp_path / "tune", prepare=prepare)
    found = [path.relative_to(tmp_path.resolve()) for path in source_files(objective)]
    assert [str(path) for path in found] == ["src/Makefile", "src/bench.c"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Makefile", "bench: src/main.c\n\tcc -O2 -o $@ $<\n"),
        ("Makefile", "SRC := src\nbench: $(wildcard $(SRC)/*.c)\n\tcc -o $@ $^\n"),
        ("Makefile", "bench:\n\t$(MAKE) -C src\n"),
        ("Makefile", "bench: main.c\n\tcc -Isrc -o build/bench main.c\n"),
        ("CMakeLists.txt", "add_subdirectory(src)\n"),
        ("meson.build", "executable('bench', 'src/main.c')\n"),
        ("Cargo.toml", '[package]\nname = "bench"\n'),
        ("go.mod", "module bench\n"),
    ],
)
def test_what_a_build_file_names_below_it_is_built_from(tmp_path: Path, name: str, text: str) -> None:
    """A header in ``src`` was mended, and the failures from before answered for it: 'nothing succeeded'."""
    kept = ("src/main.c", "src/deep/kernel.h", "src/bin/tool.rs")
    made(tmp_path, *kept, "build/made.h", "src/build/made.h", "src/gen/CMakeCache.txt", "src/gen/made.h")
    made(tmp_path, "src/notes.txt", "src/.cache/made.c")
    (tmp_path / name).write_text(text)
    assert set(sources(tmp_path, "./bench", prepare=("make", "OUT={folder}"))) == {name, *kept}
    (tmp_path / "tune").mkdir()
    for prepare in (("make", "-C", ".."), ("sh", "-c", "cd .. && make")):
        objective = CommandObjective(("../bench",), tmp_path / "tune", prepare=prepare)
        assert len(source_files(objective)) == 4


@pytest.mark.parametrize(
    "rule",
    [
        "bench: src/main.c\n\techo '#define TILE $(TILE)' > src/gen/config.h\n",
        "src/gen/config.h: src/config.in\n\tsed s/@/$(TILE)/ $< > $@\n",
        "src/other.h src/gen/config.h : src/config.in\n\tpython $< $@\n",
    ],
)
def test_what_a_makefile_makes_is_no_source(tmp_path: Path, rule: str) -> None:
    """Also where a source includes it: each configuration would be another program, and lose the others."""
    made(tmp_path, "src/main.c", "src/gen/config.h", "src/config.in")
    (tmp_path / "src/main.c").write_text('#include "gen/config.h"\n')
    (tmp_path / "Makefile").write_text(f"TILE := 8\nSRC ::= src\n{rule}")
    assert sources(tmp_path, "./bench", prepare=("make", "TILE={tile}")) == ["Makefile", "src/main.c"]


def test_a_build_file_that_prepare_names_is_read(tmp_path: Path) -> None:
    made(tmp_path, "engine/src/main.rs", "engine/target/made.rs", "other.rs")
    (tmp_path / "engine/Cargo.toml").write_text("[package]\n")
    prepare = ("cargo", "build", "--manifest-path", "engine/Cargo.toml")
    assert sources(tmp_path, "./bench", prepare=prepare) == ["engine/Cargo.toml", "engine/src/main.rs"]


def test_a_build_file_does_not_stand_for_what_is_above_it(tmp_path: Path) -> None:
    made(tmp_path, "engine/main.c", "common/util.h", "unused.h", "docs/conf.py")
    (tmp_path / "engine/Makefile").write_text("# .. . / ../engine\nx: ../common/util.h\n\tcc -I..\n")
    found = sources(tmp_path, "./bench", prepare=("make", "-C", "engine"))
    assert found == ["engine/Makefile", "engine/main.c", "common/util.h"]


def test_what_cmake_has_written_is_no_source(tmp_path: Path) -> None:
    """Before the first search it is not there, and afterwards the source would be another one."""
    make = ("make", "-C", "build")
    made(tmp_path, "bench.c")
    assert sources(tmp_path, "build/bench", prepare=make) == ["bench.c"]
    made(tmp_path, "build/Makefile", "build/CMakeCache.txt")
    assert sources(tmp_path, "build/bench", prepare=make) == ["bench.c"]


def test_what_is_written_for_each_configuration_is_no_source(tmp_path: Path) -> None:
    made(tmp_path, "run.sh", "config.py", "results/out.json")
    run = ("./run.sh", "config.py", "results/out.json")
    assert sources(tmp_path, *run, config_file="config.py", metrics_file="results/out.json") == ["run.sh"]


@pytest.mark.parametrize(
    "run",
    [
        ("sh", "-c", "sh run.sh > out.csv && cat out.csv"),
        ("sh", "-c", "sh run.sh 2>>out.csv; tail -1 out.csv"),
        ("sh", "-c", "sh run.sh | tee out.csv"),
        ("sh", "run.sh", "-o", "out.csv"),
        ("sh", "run.sh", "--metrics-out", "out.csv"),
        ("sh", "run.sh", "--output_file", "out.csv"),
        ("sh", "run.sh", "-logfile", "out.csv"),
        ("sh", "run.sh", "--save-to", "out.csv"),
    ],
)
def test_what_a_command_line_writes_is_no_source(tmp_path: Path, run: tuple[str, ...]) -> None:
    made(tmp_path, "run.sh", "out.csv")
    assert sources(tmp_path, *run) == ["run.sh"]


def test_what_only_sounds_like_an_option_of_output_leads_to_a_source(tmp_path: Path) -> None:
    made(tmp_path, "run.sh", "in.csv")
    for option in ("--layout", "--log-config", "--without", "--input"):
        assert sorted(sources(tmp_path, "sh", "run.sh", option, "in.csv")) == ["in.csv", "run.sh"]


@pytest.mark.parametrize(
    "run",
    [
        ("sh", "-c", "sh run.sh && cat out.csv"),
        ("sh", "-c", "sh run.sh {a}; tail -n 1 out.csv"),
        ("sh", "-c", "sh run.sh && sh run.sh 2 && cat in.csv out.csv"),
        ("bash", "-c", "sh write.sh && python3 run.sh out.csv"),
    ],
)
def test_what_is_written_before_it_is_shown_is_no_source(tmp_path: Path, run: tuple[str, ...]) -> None:
    """It is there after the first run, and another one after each."""
    made(tmp_path, "run.sh", "out.csv")
    (tmp_path / "write.sh").write_text("# as the program says\n./bench $1 | grep -v '#' >out.csv\n")
    assert [name for name in sources(tmp_path, *run) if name != "write.sh"] == ["run.sh"]


@pytest.mark.parametrize(
    "run", ["cat in.csv | sh run.sh", "make -s && cat in.csv | sh run.sh", "cat in.csv && sh run.sh"]
)
def test_what_is_shown_to_a_program_is_a_source(tmp_path: Path, run: str) -> None:
    made(tmp_path, "run.sh", "in.csv")
    assert sorted(sources(tmp_path, "sh", "-c", run)) == ["in.csv", "run.sh"]


def test_a_module_beside_the_space_file_is_found_as_it_is_loaded(tmp_path: Path) -> None:
    made(tmp_path, "mine/kernel.py", "mine/__init__.py")
    (tmp_path / "kernel.py").write_text("import helper\n")
    (tmp_path / "helper.py").write_text("")
    for target, names in [
        ("kernel:f", ["kernel.py", "helper.py"]),
        ("kernel.py:f", ["kernel.py", "helper.py"]),
        ("mine.kernel:f", ["mine/kernel.py"]),
        ("nowhere:f", []),
        ("nowhere.py:f", []),
    ]:
        found = source_files(PythonObjective(target, tmp_path))
        assert [str(path.relative_to(tmp_path.resolve())) for path in found] == names


def test_finding_the_source_runs_none_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loud").mkdir()
    (tmp_path / "loud" / "__init__.py").write_text("raise SystemExit('it was run')\n")
    (tmp_path / "loud" / "kernel.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    found = source_files(PythonObjective("loud.kernel:f", tmp_path / "elsewhere"))
    assert found == ((tmp_path / "loud" / "kernel.py").resolve(),)
