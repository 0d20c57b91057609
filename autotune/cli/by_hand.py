"""What a command was given for a configuration, for people to run it by hand or to use its config file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autotune.measure.commands.placeholders import config_text, named_in, placeholder_values
from autotune.session.opening.identity import command_of
from autotune.space.configuration import Configuration
from autotune.space.placeholders import FOLDER, fill, fill_arguments, lacks_all_values
from autotune.store.records import StudyRecord


@dataclass(frozen=True)
class ByHand:
    """The command lines and the config file of one configuration; empty for objectives of other kinds."""

    commands: Mapping[str, list[str]] = field(default_factory=dict)
    """By their key in the space file."""
    config_file: str = ""
    """Its path; empty where the command has none."""
    config_text: str = ""
    uses_folder: bool = False
    """Whether the word ``folder`` stands in them for the configuration's own folder, which may be gone."""


def by_hand(study: StudyRecord, configuration: Configuration) -> ByHand:
    """Empty too for what an archive from elsewhere has in the place of a command."""
    try:
        if (spec := command_of(study)) is None:
            return ByHand()
        config = f"{FOLDER}/{Path(spec.config_file).name}" if spec.config_file else ""
        values = placeholder_values(configuration, study.workload, FOLDER, config)
        given = {k: v for k, v in spec.environment.items() if not lacks_all_values(v, values)}
        variables = (
            ["env", *(f"{name}={fill(text, values)}" for name, text in given.items())] if given else []
        )
        parts = {"prepare": spec.prepare, "check": spec.check, "run": spec.arguments}
        commands = {part: [*variables, *fill_arguments(t, values)] for part, t in parts.items() if t}
        text = config_text(spec, configuration, values) if config else ""
        named = named_in(*spec.prepare, *spec.check, *spec.arguments, *spec.environment.values())
        return ByHand(commands, config, text, uses_folder=bool(config) or FOLDER in named)
    except (AttributeError, TypeError, ValueError):
        return ByHand()
