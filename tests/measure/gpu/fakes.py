"""An apparatus whose clock only moves as a script says: what a timer does is seen without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from autotune.measure.gpu.timing import CannotCapture


@dataclass
class FakeDevice:
    """Event source and apparatus in one. Work is a list; each piece advances the clock by its seconds."""

    resolution: float = 0.5e-6
    flush_seconds: float = 30e-6
    flush_bytes: int = 100 << 20
    captures: bool = True
    free: int = 1 << 30
    now: float = 0.0
    done: list[str] = field(default_factory=list)
    recording: list[tuple[str, float]] | None = None

    @property
    def events(self) -> FakeDevice:
        return self

    def work(self, name: str, seconds: float) -> None:
        if self.recording is not None:
            self.recording.append((name, seconds))
            return
        self.done.append(name)
        self.now += seconds

    def record(self) -> float:
        self.done.append("mark")
        return self.now

    def elapsed(self, start: float, end: float) -> float:
        return end - start

    def wait(self, mark: float) -> None:
        assert mark <= self.now, "the device has not come by it"
        self.done.append("wait")

    def synchronise(self) -> None:
        self.done.append("synchronise")

    def flush(self) -> None:
        self.work("flush", self.flush_seconds)

    def hold(self, seconds: float) -> None:
        self.work("hold", seconds)

    def capture(self, run: Callable[[], None]) -> Callable[[], None]:
        if not self.captures:
            raise CannotCapture("no graphs here")
        self.recording = []
        run()
        recorded, self.recording = self.recording, None

        def replay() -> None:
            self.done.append("replay")
            for piece in recorded:
                self.work(*piece)

        return replay

    def free_bytes(self) -> int:
        return self.free

    def relocate(self, gap_bytes: int) -> None:
        return

    def kernel(self, name: str = "kernel", seconds: float = 5e-6) -> Callable[[], None]:
        return lambda: self.work(name, seconds)
