"""Objectives that misbehave while they are prepared, loaded or checked."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

import autotune


class Unprepared(autotune.Objective):
    def prepare(self, configuration):
        fault = configuration["fault"]
        if fault == "hang in prepare":
            ctypes.PyDLL(None).pause()
        if fault == "crash in prepare":
            ctypes.string_at(0)
        if fault == "refuse":
            raise autotune.Infeasible("not on this device")
        if fault == "lock":
            return threading.Lock()
        if fault == "lambda":
            return lambda: 1
        if fault == "eat memory in prepare":
            return b"".join(bytes([n % 256]) * 10_000_000 for n in range(1000))
        if fault == "leave a compiler" and os.fork() == 0:
            while True:
                signal.pause()
        if fault == "large":
            return fault, b"x" * 50_000_000
        return fault, b""

    def load(self, prepared):
        fault, data = prepared
        if fault == "large":
            assert len(data) == 50_000_000
        if fault == "exit in load":
            sys.exit("a library did this")
        return fault

    def check(self, loaded, rng):
        if loaded == "wrong":
            raise autotune.WrongAnswer("2 + 2 is 4, not 5")
        if loaded == "past its bound":
            return {"error": 0.5}
        if loaded == "out of memory":
            raise autotune.OutOfMemory("the device is full")
        if loaded == "diverged":
            raise autotune.Diverged("the loss is 1e30")
        return {"error": 1e-9}

    def measure(self, loaded, rng):
        return 1.0
