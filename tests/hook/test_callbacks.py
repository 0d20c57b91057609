"""The callbacks in real training loops of their frameworks, as far as these are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import autotune
from autotune.measure.commands.run_listener import RunListener
from autotune.measure.commands.run_protocol import VARIABLE
from autotune.measure.outcome import Report
from autotune.measure.reports import Curve, Reporter

EPOCHS = 6
STOP_AT = 1

pytestmark = pytest.mark.torch


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


class Session:
    """Follows ``metric`` and says at its first report that the trial is to end."""

    def __init__(self, folder: Path, metric: str, stop: bool) -> None:
        self.heard: dict[int, dict[str, float]] = {}
        self.stop = stop
        curve = Curve(EPOCHS, metric, tuple(range(1, EPOCHS)))
        self.listener = RunListener(folder, {"lr": 0.05}, Reporter(curve, self.hear))

    def hear(self, report: Report, waits: bool) -> str:
        self.heard[report.step] = dict(report.metrics)
        return "behind" if self.stop and report.step == STOP_AT else ""


class Run:
    """The run that a callback is given, with the worker's turn after each report."""

    def __init__(self, session: Session) -> None:
        self._run = autotune.run("callback")
        self._session = session
        self.lr = self._run.knob("lr", default=0.01)

    def report(self, step: int, metrics: Any) -> None:
        self._run.report(step, metrics)
        self._session.listener.attend()

    @property
    def should_stop(self) -> bool:
        return self._run.should_stop

    def close(self) -> None:
        self._run.close()


@pytest.fixture(params=[False, True], ids=["to the end", "stopped"])
def stop(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def run(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: bool
) -> Iterator[Run]:
    session = Session(tmp_path / "trial", request.param, stop)
    monkeypatch.setenv(VARIABLE, session.listener.document)
    monkeypatch.chdir(tmp_path)
    with session.listener:
        run = Run(session)
        yield run
        run.close()
    assert list(session.heard) == list(range(1, (STOP_AT if stop else EPOCHS) + 1))


def data() -> tuple[Any, Any]:
    import torch

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(32, 4, generator=generator)
    return x, x.sum(1, keepdim=True)


@needs("torch", "lightning")
@pytest.mark.parametrize("run", ["val_loss"], indirect=True)
@pytest.mark.parametrize(
    ("by", "batch", "epochs", "validate"),
    [("epochs", 8, EPOCHS, 1.0), ("steps", 5, 1, 1)],
    ids=["epochs", "steps of one epoch"],
)
def test_lightning(
    run: Run, by: Literal["epochs", "steps"], batch: int, epochs: int, validate: float
) -> None:
    """With ``by="steps"``, a training of one epoch with validations in it was heard once, at its end."""
    import lightning.pytorch as pl
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from autotune.hook.callbacks.lightning import ReportToRun

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch: Any, index: int) -> Any:
            return (self.layer(batch[0]) - batch[1]).square().mean()

        def validation_step(self, batch: Any, index: int) -> None:
            self.log("val_loss", self.training_step(batch, index))

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=run.lr)

    loader = DataLoader(TensorDataset(*data()), batch_size=batch, drop_last=True)
    trainer = pl.Trainer(
        max_epochs=epochs, val_check_interval=validate, callbacks=[ReportToRun(run, by=by)], logger=False,
        accelerator="cpu", enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Module(), loader, loader)


@needs("torch", "transformers", "accelerate")
@pytest.mark.parametrize("run", ["eval_loss"], indirect=True)
def test_transformers(run: Run, tmp_path: Path) -> None:
    import torch
    from transformers import Trainer, TrainingArguments

    from autotune.hook.callbacks.transformers import ReportToRun

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            found = self.layer(x)
            return {"loss": (found - labels).square().mean(), "logits": found}

    rows = [{"x": x, "labels": y} for x, y in zip(*data(), strict=True)]
    arguments = TrainingArguments(
        output_dir=str(tmp_path / "out"), num_train_epochs=EPOCHS, learning_rate=run.lr,
        eval_strategy="epoch", save_strategy="no", logging_strategy="no", report_to="none",
        disable_tqdm=True, use_cpu=True,
    )  # fmt: skip
    Trainer(
        model=Model(), args=arguments, train_dataset=rows, eval_dataset=rows, callbacks=[ReportToRun(run)]
    ).train()


@needs("torch", "keras")
@pytest.mark.parametrize("run", ["val_loss"], indirect=True)
def test_keras(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    import keras

    from autotune.hook.callbacks.keras import ReportToRun

    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(run.lr), loss="mse")
    x, y = (tensor.numpy() for tensor in data())
    callbacks = [ReportToRun(run)]
    model.fit(x, y, epochs=EPOCHS, validation_data=(x, y), callbacks=callbacks, verbose=0)
