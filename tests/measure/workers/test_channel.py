"""Messages arrive whole however they are cut, and garbage is never run."""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import Location, Problem
from autotune.measure.capture import Tail
from autotune.measure.objective import Baseline
from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.measure.workers.channel import (
    BlockingChannel,
    BrokenChannel,
    Channel,
    Splitter,
    frame,
    loads_plain,
)
from autotune.measure.workers.guardian import Guardian
from autotune.measure.workers.messages import Measured, Ready, Refused
from autotune.space.configuration import Configuration
from autotune.status import Status

OUTCOME = Outcome(
    Status.OK,
    {"time": Estimate(1.0, 0.9, 1.1, 3)},
    (Reading("time", 1.0, context={"wall": 1.0}),),
    {"measure": 1.0},
    facts={"cores": [1], "text": "x", "none": None},
    artifacts={"source": b"int x;"},
)


@pytest.mark.parametrize(
    "message",
    [
        Measured(OUTCOME, leftovers="a process"),
        Ready(True, False, (Baseline("b", "text", {"A": "1"}),)),
        Refused((Problem("m", Location("f", 1, 2), "e", "h"),)),
        Configuration({"a": 1, "order": ("i", "j"), "place": {"x": "y"}}),
    ],
)
def test_our_own_data_passes(message: object) -> None:
    (payload,) = Splitter().feed(frame(message))
    assert loads_plain(payload) == message


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("echo this must not run",)


@pytest.mark.parametrize("value", [Evil(), os.getcwd, print, pytest.raises, Channel])
def test_nothing_else_is_unpickled(value: object) -> None:
    with pytest.raises(BrokenChannel, match="has no place in a message"):
        loads_plain(pickle.dumps(value))


@given(st.binary(max_size=200))
def test_garbage_is_a_broken_channel(data: bytes) -> None:
    with suppress(BrokenChannel):
        loads_plain(data)


@given(st.lists(st.binary(max_size=100), max_size=10), st.integers(1, 50))
def test_messages_are_whole_however_the_stream_is_cut(messages: list[bytes], size: int) -> None:
    stream = b"".join(frame(message) for message in messages)
    splitter = Splitter()
    payloads = [
        p for start in range(0, len(stream), size) for p in splitter.feed(stream[start : start + size])
    ]
    assert [pickle.loads(payload) for payload in payloads] == messages


def test_an_impossible_length_is_noticed() -> None:
    with pytest.raises(BrokenChannel):
        list(Splitter().feed(b"\xff" * 16))


def test_a_large_message_does_not_block_its_sender() -> None:
    ours, theirs = socket.socketpair()
    sender, receiver = Channel(ours), BlockingChannel(theirs.fileno())
    sender.send(b"x" * 10_000_000)
    assert sender.unsent, "a socket does not hold so much"
    received = []
    while sender.unsent:
        received.append(theirs.recv(1 << 20))
        sender.flush()
    theirs.setblocking(False)
    while len(b"".join(received)) < 10_000_000:
        received.append(theirs.recv(1 << 20))
    assert len(pickle.loads(next(Splitter().feed(b"".join(received))))) == 10_000_000
    del receiver
    ours.close()
    theirs.close()


def test_the_other_side_going_away_is_noticed() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    theirs.close()
    channel.send("nobody hears this")
    with pytest.raises(BrokenChannel):
        channel.receive()
    ours.close()


def test_a_worker_never_writes_into_what_has_taken_its_descriptor() -> None:
    ours, theirs = socket.socketpair()
    descriptor = theirs.detach()
    channel = BlockingChannel(descriptor)
    channel.send("hello")
    read, write = os.pipe()
    os.dup2(write, descriptor)
    with pytest.raises(BrokenChannel, match="closed the connection"):
        channel.send("not into this pipe")
    os.set_blocking(read, False)
    with pytest.raises(BlockingIOError):
        os.read(read, 1)
    for each in (read, write, descriptor):
        os.close(each)
    ours.close()


def test_last_words_are_heard_though_some_of_ours_were_not() -> None:
    """Closing with unread words resets the connection, behind what was sent on it."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    channel.send("unheard")
    theirs.sendall(frame(Measured(OUTCOME)))
    theirs.close()
    assert channel.receive() == [Measured(OUTCOME)]
    with pytest.raises(BrokenChannel):
        channel.receive()
    ours.close()


@pytest.fixture
def reset() -> Iterator[socket.socket]:
    """Our end of a connection whose other side has died with unread words: that resets it."""
    session, ours = socket.socketpair()
    ours.sendall(b"unheard")
    session.close()
    yield ours
    ours.close()


def test_a_worker_whose_session_died_with_unread_words_ends(reset: socket.socket) -> None:
    with pytest.raises(BrokenChannel):
        BlockingChannel(reset.fileno()).receive()


def test_a_guardian_whose_session_died_with_unread_words_kills_the_worker(reset: socket.socket) -> None:
    read, write = os.pipe()
    assert Guardian(reset, os.getppid(), None)._obey(Tail(read)) is False
    os.close(read)
    os.close(write)
