"""What the store hands out and takes in, as frozen data.

All times are UTC POSIX seconds. A number that is not known is ``None``; a text that is not known is empty.
Mappings are JSON documents: text keys, and values that JSON can hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from autotune.measure.outcome import Estimate
from autotune.space.configuration import Configuration
from autotune.space.spec import MetricSpec
from autotune.status import Status

Document = Mapping[str, Any]
"""A JSON object."""

Purpose = Literal["search", "final", "default", "baseline"]
"""What a trial is for. ``search``: proposed by a strategy, at most one a configuration in a study. The others
are deliberate replicates: a finalist or the default measured again, a vendor baseline."""


@dataclass(frozen=True)
class NewStudy:
    """A study to begin. See :class:`StudyRecord` for the fields."""

    name: str
    key: str
    spec_text: str
    document: Document
    space_hash: str
    objective: str
    workload: Document
    metrics: Sequence[Document]
    machine_key: str
    environment_hash: str
    replayed: bool = False
    parent_id: int | None = None
    differs: Document = field(default_factory=dict)


@dataclass(frozen=True)
class StudyRecord:
    """One space + objective + workload + goal."""

    id: int
    name: str
    """As in the space file. Several studies may share it; the newest is meant where no id is given."""
    key: str
    """Hash of all that makes it this study, except the space, which may grow."""
    spec_text: str
    """The space file as it was read last."""
    document: Document
    space_hash: str
    objective: str
    workload: Document
    metrics: Sequence[Document]
    machine_key: str
    environment_hash: str
    """The environment that the study began in; each trial names its own."""
    replayed: bool
    """Whether its readings come from a recording."""
    parent_id: int | None
    """The earlier study of this name that it follows."""
    differs: Document
    """What is not as in the parent: ``{part: [before, after]}``."""
    created_at: float
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many search trials stand in each status; a status that no trial has is left out."""

    @property
    def goals(self) -> tuple[MetricSpec, ...]:
        """The metrics with a goal, at least one; the first is what trials are judged by."""
        return tuple(MetricSpec(**metric) for metric in self.metrics if metric["goal"])

    @property
    def precision(self) -> float:
        """The precision to which its configurations were read; 0 where other tools did not say."""
        return float((self.document.get("measure") or {}).get("precision", 0.0))

    @property
    def confidence(self) -> float:
        """The level of its confidence intervals."""
        return float((self.document.get("measure") or {}).get("confidence", 0.95))

    @property
    def label(self) -> str:
        """``name#id``, which :meth:`Store.study` understands."""
        return f"{self.name}#{self.id}"

    @property
    def space_file(self) -> str:
        """The path of the file that it was searched from last; empty where there was none."""
        return str(self.document.get("source") or "")


@dataclass(frozen=True)
class SpaceRevision:
    """A space that a living study had before it grew."""

    study_id: int
    replaced_at: float
    spec_text: str
    document: Document
    space_hash: str


@dataclass(frozen=True)
class SegmentRecord:
    """A stretch of a study during which the objective's source did not change."""

    id: int
    study_id: int
    number: int
    """0, 1, 2 ... in the study."""
    document: Document
    """The frozen source: commit, hashes, files."""
    artifacts: Mapping[str, str]
    """Hash of each stored file, by role."""
    reason: str
    """Why the segment began."""
    created_at: float


@dataclass(frozen=True)
class SessionRecord:
    """One run of the loop over a study. ``finished_at`` is ``None`` while it runs, or after it was killed."""

    id: int
    study_id: int
    settings: Document
    environment_hash: str
    pid: int
    host: str
    started_at: float
    finished_at: float | None
    reason: str
    """Why it ended."""


@dataclass(frozen=True)
class Place:
    """Where trials are written: ids of the study, the session and the segment."""

    study: int
    session: int
    segment: int


NO_ASK = -1
"""Stands for the number of an ask where no strategy was asked: the user named the configuration."""


@dataclass(frozen=True)
class NewTrial:
    """A configuration to try, and why."""

    configuration: Configuration
    purpose: Purpose = "search"
    strategy: str = ""
    reason: Document = field(default_factory=dict)
    ask: int = 0
    """The number of the ask that proposed it, or :data:`NO_ASK`."""
    knew: int = 0
    """How many outcomes the strategy had been told then."""


@dataclass(frozen=True)
class NewAsk:
    """One call of a strategy's ``ask``, and what the strategy knew of the study then."""

    number: int
    """0, 1, 2 ... in the study; searches that run at the same time may use the same ones."""
    wanted: int
    """How many proposals it was asked for."""
    trials_known: int
    """It knew that the search trials with lower numbers than this one were proposed."""
    results_known: int
    """It had been told the results that come before this place in the order of finishing."""


NO_ROOM = -1
"""Stands in the place of a trial's number for a proposal that the budget left no room for."""


@dataclass(frozen=True)
class AskRecord(NewAsk):
    """A call of ``ask`` with the trials that came of it."""

    session_id: int
    trials: tuple[int | None, ...]
    """The number of each proposal's trial; ``None`` where another session had proposed it already, and
    :data:`NO_ROOM` where the budget was spent."""

    @property
    def written(self) -> tuple[int, ...]:
        """The numbers of the trials that came of it."""
        return tuple(number for number in self.trials if number not in (None, NO_ROOM))


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One configuration in a study and what came of it."""

    id: int
    """Unique in the store."""
    study_id: int
    number: int
    """0, 1, 2 ... in the study."""
    session_id: int
    """The session that measures or measured it: the one that proposed it, or that took it over."""
    segment_id: int
    purpose: Purpose
    configuration: Configuration
    hash: str
    status: Status
    strategy: str = ""
    reason: Document = field(default_factory=dict)
    ask: int = 0
    knew: int = 0
    told: int | None = None
    """The order of finishing: 0, 1, 2 ... in the study; ``None`` while there is no result."""
    attempt: int = 1
    """1, and one more each time that it was lost and put back."""
    worker: str = ""
    lease_until: float = 0.0
    """Past this time an unfinished trial counts as lost."""
    proposed_at: float = 0.0
    started_at: float | None = None
    finished_at: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    """Seconds spent in each phase."""
    metrics: Mapping[str, Estimate] = field(default_factory=dict)
    reading_count: int = 0
    message: str = ""
    phase: str = ""
    exit_code: int | None = None
    signal: int | None = None
    peak_memory: int | None = None
    """Bytes."""
    stderr: str = ""
    facts: Document = field(default_factory=dict)
    environment_hash: str = ""
    artifacts: Mapping[str, str] = field(default_factory=dict)
    """Hash of each stored file, by role."""


@dataclass(frozen=True, slots=True)
class ResultRecord:
    """What there is to learn from a trial that has finished, or that is ``paused`` and may go on."""

    told: int
    """Its place in the order of results."""
    number: int
    configuration: Configuration
    status: Status
    reason: Document
    phases: Mapping[str, float]
    metrics: Mapping[str, Estimate]
    peak_memory: int | None
    facts: Document
    started_at: float | None = None
    finished_at: float | None = None
    """Not known of one that is paused."""
    paused: bool = False
    """Whether it was paused, and this is what was known then: its final result has another place."""


ACROSS = "across"
"""The key of a verdict that marks it as one of a cross measurement, and lists the configurations in it."""


@dataclass(frozen=True)
class VerdictRecord:
    """What a re-measurement of the finalists came to."""

    id: int
    study_id: int
    session_id: int
    document: Document
    created_at: float

    @property
    def across(self) -> bool:
        """Whether it is of a cross measurement, in which the winners of several workloads were measured."""
        return ACROSS in self.document


@dataclass(frozen=True)
class NewRecipe:
    """A recipe that was imported: a winner of another store."""

    name: str
    """The name of the study that it comes from."""
    device: str
    case: str
    """The workload, as one text: there is one recipe of a name for each device and case."""
    document: Document


@dataclass(frozen=True)
class RecipeRecord(NewRecipe):
    """A recipe that is in the store."""

    id: int
    imported_at: float
