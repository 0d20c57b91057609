"""What a study tunes, as a person would write it."""

from __future__ import annotations

import shlex

from autotune.session.opening.identity import CALLABLE, command_of
from autotune.space.spec import CommandObjective
from autotune.store.records import StudyRecord


def say_objective(study: StudyRecord) -> dict[str, str]:
    """The objective in words, by what they are about; of a command each part that it has.

    What an archive from elsewhere has in the place of a command is shown as it is.
    """
    try:
        if (command := command_of(study)) is not None:
            return {name: text for name, text in _parts(command).items() if text}
    except (AttributeError, TypeError, ValueError):
        pass
    given = study.objective.removeprefix(CALLABLE)
    return {"objective": study.objective if given == study.objective else f"given by a program: {given}"}


def _parts(command: CommandObjective) -> dict[str, str]:
    patterns = ", ".join(f"{metric}: {pattern}" for metric, pattern in command.patterns.items())
    return {
        "command": shlex.join(command.arguments),
        "command's prepare": shlex.join(command.prepare),
        "command's check": shlex.join(command.check),
        "command's environment": shlex.join(f"{name}={text}" for name, text in command.environment.items()),
        "command's config": command.config_file,
        "command's template": command.config_text,
        "command's metrics": " ".join(filter(None, (command.metrics_from, command.metrics_file, patterns))),
    }
