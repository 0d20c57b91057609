"""The values of a configuration as texts for a program: in arguments, variables and config files. Pure.

=====================  =====================  ==========================================
value                  as text                in a config file
=====================  =====================  ==========================================
number                 ``16``, ``0.001``      the same
flag                   ``true``, ``false``    the same
text                   as it is               quoted
permutation            ``i,j,k``              a list
assignment             a JSON object          a table
=====================  =====================  ==========================================

:func:`autotune.space.placeholders.fill` puts the texts into the place of ``{knob}``.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from autotune.space import placeholders
from autotune.space.configuration import FrozenMap, Value, freeze, plain
from autotune.space.spec import CommandObjective

_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def as_text(value: Value) -> str:
    """``value`` as an argument: see the table above. Items of a permutation are joined by commas."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(map(as_text, value))
    if isinstance(value, FrozenMap):
        return json.dumps(plain(value), separators=(",", ":"))
    return str(value)


def placeholder_values(
    configuration: Mapping[str, Value], workload: Mapping[str, object], folder: str, config: str = ""
) -> dict[str, str]:
    """The text for each placeholder: ``tile_m``, ``workload.m``, ``folder``, ``config`` if there is one."""
    values = {f"workload.{name}": as_text(freeze(fact)) for name, fact in workload.items()}
    values |= {placeholders.FOLDER: folder} | ({placeholders.CONFIG: config} if config else {})
    return values | {name: as_text(value) for name, value in configuration.items()}


def named_in(*texts: str) -> set[str]:
    """The names of all placeholders in some texts."""
    return {name for text in texts for name, _ in placeholders.names(text)}


def config_text(spec: CommandObjective, configuration: Mapping[str, Value], values: Mapping[str, str]) -> str:
    """What the config file of a command holds, where it has one; ``values`` are those of the placeholders."""
    if spec.config_text:
        return placeholders.fill_lines(spec.config_text, values)
    file = Path(spec.config_file)
    return config_document(file.suffix or file.name, configuration)


def config_document(ending: str, configuration: Mapping[str, Value]) -> str:
    """The configuration as the text of a config file: ``.json``, ``.yaml``, ``.yml``, ``.toml`` or ``.env``.

    Raises ``ValueError`` for another ending.
    """
    if ending not in _WRITERS:
        raise ValueError(f"{ending!r} is no known form of a config file: expected {', '.join(_WRITERS)}")
    return _WRITERS[ending](configuration)


def yaml_value(value: Value) -> str:
    """A value on one line of YAML; texts are always quoted."""
    return _literal(value, ": ")


def yaml_key(name: str) -> str:
    """A name as a key of YAML or TOML; quoted where YAML 1.1 has another meaning for it, or TOML none."""
    return name if name.isascii() and name.lower() not in _WORDS else _quoted(name)


def _json(configuration: Mapping[str, Value]) -> str:
    return json.dumps({name: plain(value) for name, value in configuration.items()}, indent=1) + "\n"


def _env(configuration: Mapping[str, Value]) -> str:
    return "".join(f"{name}={shlex.quote(as_text(value))}\n" for name, value in configuration.items())


def _lines(configuration: Mapping[str, Value], equals: str) -> str:
    """One line a knob, in the notation that YAML's flow style and TOML share but for the sign ``equals``."""
    return "".join(
        f"{yaml_key(name)}{equals}{_literal(value, equals)}\n" for name, value in configuration.items()
    )


_WRITERS: Mapping[str, Callable[[Mapping[str, Value]], str]] = {
    ".json": _json,
    ".yaml": partial(_lines, equals=": "),
    ".yml": partial(_lines, equals=": "),
    ".toml": partial(_lines, equals=" = "),
    ".env": _env,
}


def _literal(value: Value, equals: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # 1e-05 is a text to YAML 1.1, which most libraries still read; 1.0e-05 is a number to all.
        mantissa, e, exponent = repr(value).partition("e")
        return f"{mantissa}{'' if '.' in mantissa else '.0'}{e}{exponent}"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(_literal(item, equals) for item in value) + "]"
    if isinstance(value, FrozenMap):
        items = (f"{_quoted(key)}{equals}{_literal(item, equals)}" for key, item in value.items())
        return "{" + ", ".join(items) + "}"
    return _quoted(value)


def _quoted(text: str) -> str:
    """A double-quoted text in the escapes that YAML and TOML have in common."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
