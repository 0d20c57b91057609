"""The knobs of a run: the value of each, and where it is from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from autotune.hook.runs.values import like, read, thawed

if TYPE_CHECKING:
    from argparse import ArgumentParser

T = TypeVar("T")


class Knobs:
    """Chooses the value of each knob that a script asks for, and keeps what was chosen.

    The value is the first of: what ``--set`` says, what the search tries, the recipe's if recipes were asked
    for, and the default.
    """

    def __init__(self, run: str, workload: Mapping[str, object] | None, *, recipes: bool) -> None:
        self.searched: Mapping[str, Any] | None = None
        """The values that the search tries; ``None`` without a search."""
        self.asked: dict[str, tuple[object, object, str]] = {}
        """By knob: value, default, and where the value is from."""
        self._run = run
        self._workload = workload
        self._recipes = recipes
        self._recipe: tuple[Mapping[str, Any], str] | None = None
        """The recipe's configuration, and how it was chosen; ``None`` until it is looked up."""
        self._set: dict[str, str] = {}
        """What ``--set`` says: texts by knob."""
        self._parser: ArgumentParser | None = None
        """The parser that ``--set`` was added to."""
        self._of_two_defaults: set[str] = set()
        """Knobs that were asked for with different defaults, of which a warning was given."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        from autotune.hook.runs.arguments import add_set

        add_set(parser, self._set.__setitem__)
        self._parser = parser

    def knob(self, name: str, default: T) -> T:
        value, source = self._choose(name, default)
        if name in self.asked:
            from autotune.hook.runs.defaults import say_that_they_differ

            say_that_they_differ(name, self.asked[name][1], default, self._of_two_defaults)
        self.asked[name] = value, default, source
        return value

    def _choose(self, name: str, default: T) -> tuple[T, str]:
        searched = self.searched or {}
        if name in self._set:
            if name in searched:
                from autotune.errors import InputError, Problem

                text = f"--set {name}={self._set[name]}: a search is choosing the knob {name!r}"
                hint = f"leave out --set {name}, or take the knob out of the space"
                raise InputError(Problem(text, hint=hint))
            return self._read(name, default), "--set"
        if name in searched:
            return like(searched[name], default), "search"
        if self._recipes and self.searched is None:
            known = self._known()
            if name in known:
                return like(thawed(known[name]), default), "recipe"
        return default, "default"

    def _read(self, name: str, default: T) -> Any:
        """What ``--set`` says, in the type of ``default``; if it cannot be, an error of the command line."""
        text = self._set[name]
        try:
            return read(text, default, name)
        except ValueError as error:
            if self._parser is None or not getattr(self._parser, "exit_on_error", True):
                raise
            self._parser.error(f"--set {name}={text:.300}: {error}")

    def _known(self) -> Mapping[str, Any]:
        """The recipe's configuration, looked up once; empty, with a warning, if there is no recipe.

        Ranks that ``torch.distributed`` connects take that of the first of them to ask: each looks in its
        machine's files, and ranks whose knobs differ may wait for each other for ever.
        """
        if self._recipe is None:
            import json

            from autotune.hook.agreement import agree, common_store
            from autotune.hook.runs.link import warn

            mine, said, warning = self._look_up()
            topic = json.dumps(["run", self._run, self._workload], sort_keys=True, default=str)
            text = agree(topic, lambda: json.dumps([mine, said]), common_store())
            configuration, how = json.loads(text)
            if configuration != mine:
                warning = (
                    f"the run {self._run!r} has what another rank found first, {how or 'no recipe'},"
                    f" and not what this one did, {said or 'no recipe'}"
                )
            if warning:
                warn(warning)
            self._recipe = configuration, how
        return self._recipe[0]

    def _look_up(self) -> tuple[dict[str, Any], str, str]:
        """The recipe's configuration that this process finds, how it was chosen, and what to warn of."""
        from autotune.errors import AutotuneError, InputError
        from autotune.hook.recipe import recipe

        try:
            best = recipe(self._run, self._workload)
            return thawed(dict(best.configuration)), str(best), str(best) if best.stale else ""
        except (AutotuneError, OSError) as error:  # OSError: the current folder was deleted
            first, *_ = str(error).splitlines()
            hint = error.problems[0].hint if isinstance(error, InputError) else None
            said = f"the run {self._run!r} has its defaults: {first}{f' ({hint})' if hint else ''}"
            return {}, "", said

    # -- what was chosen

    @property
    def source(self) -> str:
        """Where the knobs asked for so far are from: ``search``, ``recipe``, ``--set``, ``default``."""
        found = dict.fromkeys(source for _, _, source in self.asked.values())
        return ", ".join(found) or "default"

    @property
    def defaults(self) -> dict[str, object]:
        return {name: default for name, (_, default, _) in self.asked.items()}

    def describe(self) -> str:
        lines = []
        for name, (value, default, source) in self.asked.items():
            beside = "" if source == "default" else f"; default {default!r}"
            lines.append(f"{name} = {value!r}  ({source}{beside})")
        if self._recipe is not None and any(source == "recipe" for *_, source in self.asked.values()):
            lines.append(f"recipe {self._recipe[1]}")
        return "\n".join(lines)

    def say_what_was_not_asked(self) -> None:
        for name in self._set:
            if name not in self.asked:
                from autotune.errors import nearest
                from autotune.hook.runs.link import warn

                known = nearest(name, self.asked) or f"the script has {', '.join(self.asked) or 'no knobs'}"
                warn(f"--set {name}={self._set[name]} did nothing: no knob {name!r} was asked for; {known}")
