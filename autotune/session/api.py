"""The Python entry points: ``autotune.search`` and ``autotune.ask_tell``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from autotune.measure.kernels.compile_cache import cache_folder
from autotune.measure.loading.callables import describe_callable
from autotune.measure.loading.importing import refuse_while_imported
from autotune.provenance.environment import Environment, capture
from autotune.search.registry import strategy_class
from autotune.session.asktell import AskTell
from autotune.session.execution.choosing import Measurable, make_executor
from autotune.session.execution.executor import Executor
from autotune.session.families.many import ManySession
from autotune.session.families.result import ManyResult
from autotune.session.opening.loading import load_family, load_spec, spec_of
from autotune.session.opening.overrides import Overrides
from autotune.session.progress import Progress, heard_by
from autotune.session.result import Result
from autotune.session.session import Session
from autotune.space.space import Space
from autotune.space.spec import Family, StudySpec
from autotune.store.store import Store


def search(
    space: str | Path | StudySpec | Space,
    *,
    trials: int | None = None,
    time: float | str | None = None,
    patience: int | None = None,
    target: float | None = None,
    strategy: str | None = None,
    seed: int | None = None,
    workload: Mapping[str, Any] | None = None,
    store: str | Path | None = None,
    fresh: bool = False,
    objective: Measurable | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> Result:
    """Search a space and return the defended winner; no earlier measurement of the study is repeated.

    ``space`` is a space file or a :class:`StudySpec`, which says in Python what a file says: name, metrics,
    early stopping and the rest. With an ``objective``, a :class:`Space` is enough: the study then has the
    objective's name, and its metric is ``time`` in seconds, to be minimized.

    ``trials``, ``time`` (seconds, or a text such as ``"1h30m"``), ``patience`` (trials without an
    improvement) and ``target`` (a value of the goal that is good enough) bound the study as a whole and
    override the file's ``budget:``. ``workload`` overrides facts of the file's workload by name; another
    workload is another study. ``store`` is a path or URL (default: ``AUTOTUNE_STORE`` or
    ``results/autotune.db``). ``fresh`` begins a new study.

    ``objective`` is a Python callable or objective that replaces the file's and is measured in this process.
    That is quick, but a configuration that crashes takes this process down. Another objective, or one whose
    source has changed, or an instance with other arguments of its constructor, is another study. With
    ``cache=False`` nothing that other searches have compiled is used, and nothing is kept for them.

    Raises :class:`autotune.errors.InputError` for bad input and :class:`autotune.errors.StoreError`
    if the store fails.
    """
    refuse_while_imported()
    heard = heard_by(progress)
    if isinstance(space, Space) and objective is not None:
        space = spec_of(space, describe_callable(objective))
    overrides = Overrides(
        trials=trials, time=time, patience=patience, target=target, strategy=strategy, seed=seed
    )
    spec = load_spec(space, overrides, workload=workload)
    if objective is not None:
        spec = replace(spec, objective=describe_callable(objective))
    with Store.open(store) as opened:
        session = open_session(spec, opened, fresh=fresh, objective=objective, cache=cache, progress=heard)
        return session.run()


def search_many(
    space: str | Path | Family,
    *,
    trials: int | None = None,
    time: float | str | None = None,
    patience: int | None = None,
    target: float | None = None,
    strategy: str | None = None,
    seed: int | None = None,
    store: str | Path | None = None,
    fresh: bool = False,
    objective: Measurable | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> ManyResult:
    """As :func:`search`, for all ``workloads`` of a space file.

    ``trials`` and ``time`` bound all workloads together, ``patience`` and ``target`` each by itself. A
    :class:`Family` brings its own; they cannot be overridden. To search one workload, give it to
    :func:`search` as ``workload``.
    """
    refuse_while_imported()
    heard = heard_by(progress)
    if isinstance(space, Family):
        family = space
    else:
        overrides = Overrides(
            trials=trials, time=time, patience=patience, target=target, strategy=strategy, seed=seed
        )
        family = load_family(space, overrides)
    if objective is not None:
        given = describe_callable(objective)
        family = replace(family, specs=tuple(replace(spec, objective=given) for spec in family.specs))
    with Store.open(store) as opened:
        return open_many(family, opened, fresh=fresh, objective=objective, cache=cache, progress=heard).run()


def open_many(
    family: Family,
    store: Store,
    *,
    fresh: bool = False,
    objective: Measurable | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> ManySession:
    """As :func:`open_session`, for a family."""
    compiled = cache_folder() if cache else None
    return ManySession(
        family,
        store,
        capture_environment(family.specs[0]),
        partial(make_executor, objective=objective, compiled=compiled),
        fresh=fresh,
        progress=progress or Progress(),
    )


def open_session(
    spec: StudySpec,
    store: Store,
    *,
    fresh: bool = False,
    objective: Measurable | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> Session:
    """A session that is ready to run, for callers who want to be able to stop it."""
    environment = capture_environment(spec)
    load = partial(strategy_class, spec.search.strategy)  # its imports take a second
    executor: Executor = make_executor(spec, objective, cache_folder() if cache else None, load)
    return Session(spec, store, executor, environment, fresh=fresh, progress=progress or Progress())


def ask_tell(
    space: str | Path | StudySpec,
    *,
    strategy: str | None = None,
    seed: int | None = None,
    workload: Mapping[str, Any] | None = None,
    store: str | Path | None = None,
    fresh: bool = False,
) -> AskTell:
    """A session whose trials the caller runs; see :mod:`autotune.session.asktell`."""
    spec = load_spec(space, Overrides(strategy=strategy, seed=seed), workload=workload)
    environment = capture_environment(spec)
    return AskTell(spec, Store.open(store), environment, fresh=fresh)


def capture_environment(spec: StudySpec) -> Environment:
    """The environment of a study: this machine, its software, and the space file's repository."""
    return capture(spec.source.parent if spec.source else None)
