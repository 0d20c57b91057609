"""When a report says that throughput and time to target do not agree."""

from __future__ import annotations

from autotune.measure.outcome import Estimate
from autotune.report.words.throughput import disagreement
from autotune.space.configuration import Configuration
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import TrialRecord

LOSS = MetricSpec("loss", "minimize")


def trial(number: int, status: Status = Status.OK, **metrics: float) -> TrialRecord:
    configuration = Configuration({"batch": number})
    return TrialRecord(
        id=number,
        study_id=1,
        number=number,
        session_id=1,
        segment_id=1,
        purpose="search",
        configuration=configuration,
        hash=configuration.hash,
        status=status,
        metrics={name: Estimate(value, value, value, 1) for name, value in metrics.items()},
    )


def test_it_says_by_how_much_the_fastest_is_later_at_the_target() -> None:
    small = trial(1, samples_per_s=4000, time_to_target=2.0, loss=0.1)
    large = trial(2, samples_per_s=12000, time_to_target=5.0, loss=0.1)
    assert disagreement([small, large], LOSS) == (
        "trial 2 has the most samples a second (12,000 samples/s), but takes 2.5x as long to the target as"
        " trial 1, which has 4,000 samples/s"
    )


def test_it_says_that_the_fastest_never_got_there() -> None:
    small = trial(1, samples_per_s=400, time_to_target=2.0, loss=0.1)
    large = trial(2, samples_per_s=500, loss=0.9)
    assert "trial 2" in disagreement([small, large], LOSS)
    assert "never came to the target; trial 1 did" in disagreement([small, large], LOSS)


def test_without_a_target_the_goal_decides() -> None:
    small, large = trial(1, samples_per_s=400, loss=0.1), trial(2, samples_per_s=500, loss=0.9)
    assert "at loss 0.9; the best, 0.1, is trial 1's" in disagreement([small, large], LOSS)
    accuracy = MetricSpec("accuracy", "maximize")
    good, fast = trial(1, samples_per_s=400, accuracy=0.99), trial(2, samples_per_s=500, accuracy=0.5)
    assert "the best, 0.99" in disagreement([good, fast], accuracy)


def test_it_says_nothing_where_there_is_nothing_to_say() -> None:
    both = trial(1, samples_per_s=500, time_to_target=1.0, loss=0.1)
    worse = trial(2, samples_per_s=400, time_to_target=2.0, loss=0.5)
    stopped = trial(3, Status.PRUNED, samples_per_s=900, loss=0.9)
    alike = trial(4, samples_per_s=510, time_to_target=1.02, loss=0.1)
    assert disagreement([both, worse, stopped], LOSS) == ""
    assert disagreement([both, alike], LOSS) == ""
    assert disagreement([both], LOSS) == "" == disagreement([], LOSS)
    assert disagreement([trial(1, loss=0.1), trial(2, loss=0.2)], LOSS) == ""
    assert disagreement([both, worse], MetricSpec("samples_per_s", "maximize")) == ""


def test_a_throughput_within_the_noise_is_not_called_the_highest() -> None:
    """Of a search for a rate alone, all trainings are as fast; one of them always was by a hair."""
    good, fast = trial(1, samples_per_s=500, loss=0.1), trial(2, samples_per_s=510, loss=0.9)
    assert disagreement([good, fast], LOSS) == ""
    soon, late = (
        trial(number, samples_per_s=500 + number, time_to_target=float(number), loss=0.1) for number in (1, 2)
    )
    assert disagreement([soon, late], LOSS) == ""


def test_a_loss_within_the_noise_is_not_called_the_best() -> None:
    good, fast = trial(1, samples_per_s=400, loss=-0.5), trial(2, samples_per_s=500, loss=-0.49)
    assert disagreement([good, fast], LOSS) == ""
