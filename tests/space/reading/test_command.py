"""Commands, as a space file has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.space.reading.reader import parse_spec
from autotune.space.spec import (
    CommandObjective,
)
from tests.space.texts import HEAD, TILE, problems


class TestCommand:
    def command(self, written: str, rest: str = "") -> CommandObjective:
        spec = parse_spec(f"{HEAD}command:{written}\n{rest}{TILE}", "folder/space.yaml")
        assert isinstance(spec.objective, CommandObjective)
        assert spec.objective.base == Path("folder")
        return spec.objective

    def test_list(self) -> None:
        assert self.command(' [./bench, -n, 3, "{tile}"]').arguments == ("./bench", "-n", "3", "{tile}")

    def test_text_is_split_as_a_shell_would(self) -> None:
        assert self.command(" ./bench --title 'a b' {tile}").arguments == (
            "./bench",
            "--title",
            "a b",
            "{tile}",
        )

    def test_what_is_quoted_is_not_for_a_shell(self) -> None:
        words = ("./bench", "--title=a | b", "x;y", "--limit=$HOME {tile}", "<")
        assert self.command(" ./bench --title='a | b' x\\;y --limit='$HOME {tile}' '<'").arguments == words

    def test_mapping(self) -> None:
        objective = self.command(
            """
  run: [./bench, "{config}", "{workload.n}", "{{x}}"]
  prepare: make TILE={tile}
  check: [./check]
  environment: {THREADS: 4, TILE: "{tile}"}
  config: {file: c.json}
  metrics: {file: out.json}""",
            "workload: {n: 3}\n",
        )
        assert objective.arguments == ("./bench", "{config}", "{workload.n}", "{{x}}")
        assert objective.prepare == ("make", "TILE={tile}")
        assert objective.check == ("./check",)
        assert objective.environment == {"THREADS": "4", "TILE": "{tile}"}
        assert (objective.config_file, objective.config_text) == ("c.json", "")
        assert (objective.metrics_from, objective.metrics_file) == ("file", "out.json")

    def test_config_template(self) -> None:
        objective = self.command(
            "\n  run: [./bench, '{config}']\n  config: {file: c.ini, text: \"tile = {tile}\\n\"}"
        )
        assert (objective.config_file, objective.config_text) == ("c.ini", "tile = {tile}\n")

    def test_patterns(self) -> None:
        objective = self.command("\n  run: [./bench]\n  metrics: {pattern: {time: 't=([0-9.]+)'}}")
        assert objective.metrics_from == "pattern"
        assert objective.patterns == {"time": "t=([0-9.]+)"}

    def test_wall_clock(self) -> None:
        assert self.command("\n  run: [./bench]\n  metrics: wall").metrics_from == "wall"

    @pytest.mark.parametrize(("said", "seconds"), [("", 2.0), ("\n  grace: 1m", 60.0), ("\n  grace: 0", 0.0)])
    def test_grace(self, said: str, seconds: float) -> None:
        assert self.command(f"\n  run: [./bench]{said}").grace == seconds

    def test_placeholders_are_found_inside_a_text(self) -> None:
        found = problems(f"{HEAD}command: ./bench --tile {{tile}} {{tyle}}\n{TILE}")
        said = (
            "unknown placeholder {tyle}\n  expected: a knob, workload.NAME or folder\n  did you mean 'tile'?"
        )
        assert found == [f"space.yaml:3:32: {said}"]

    def test_an_unknown_placeholder_in_the_name_of_a_metrics_file(self) -> None:
        text = (
            f"{HEAD}command:\n  run: [./bench, '{{tile}}']\n  metrics: {{file: '{{foldr}}/m.json'}}\n{TILE}"
        )
        (found,) = problems(text)
        assert "unknown placeholder {foldr}" in found and "did you mean 'folder'?" in found

    def test_each_lone_brace_of_a_template_is_named_where_it_stands(self) -> None:
        """A template of JSON has many: one at a time, of the line of ``text:``, they were a long way."""
        template = '    text: |\n\n      {\n        "tile": {tile}\n      }\n'
        command = f"command:\n  run: [./bench, '{{config}}']\n  config:\n    file: c.json\n{template}"
        found = problems(f"{HEAD}{command}{TILE}")
        assert [one.partition(";")[0] for one in found] == [
            "space.yaml:9:7: a lone '{'",
            "space.yaml:11:7: a lone '}'",
        ]

    def test_an_unknown_placeholder_of_a_template_is_named_where_it_stands(self) -> None:
        template = "    text: |\n      [a]\n      tile = {tyle}\n"
        command = f"command:\n  run: [./bench, '{{config}}']\n  config:\n    file: c.ini\n{template}"
        (found,) = problems(f"{HEAD}{command}{TILE}")
        assert found.startswith("space.yaml:9:14: unknown placeholder {tyle}")

    def test_a_brace_of_a_folded_template_is_named_where_it_stands(self) -> None:
        template = "    text: >\n      a\n      b {\n"
        command = f"command:\n  run: [./bench, '{{config}}']\n  config:\n    file: c.ini\n{template}"
        (found,) = problems(f"{HEAD}{command}{TILE}")
        assert found.startswith("space.yaml:9:9: a lone '{'")
