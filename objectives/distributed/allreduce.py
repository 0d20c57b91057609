"""A reduction in pieces, several of them in flight. In ranks.

Each piece is a generator of what it waits for. The pieces in flight are gone round: whoever's turn it is
waits for its own messages, and sends the next ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from allreduce_plan import Plan

from autotune.measure.groups.rank import Rank

Works = Sequence[Any]
Piece = Iterator[Works]


class Pipeline:
    """Reduces float32 tensors by one plan. ``residual`` is what compression has not sent yet."""

    def __init__(self, rank: Rank, gloo: Any, plan: Plan) -> None:
        self.rank, self.gloo, self.plan = rank, gloo, plan
        self.residual: torch.Tensor | None = None
        self._tag = 0
        self._flying: deque[tuple[Piece, Works]] = deque()
        self._pieces = 0

    def reduce(
        self, given: torch.Tensor, out: torch.Tensor, before: Callable[[int, int], None] | None = None
    ) -> None:
        """Write the sum of ``given`` over all ranks to ``out``; both are flat and of one size.

        ``before(number, count)`` is called before piece ``number`` of ``count`` is sent: it makes it ready.
        """
        if self.plan.compression == "int8" and self.residual is None:
            self.residual = torch.zeros_like(given)
        size = max(1, min(self.plan.chunk // given.element_size(), given.numel()))
        count = -(-given.numel() // size)
        for number in range(count):
            if before is not None:
                before(number, count)
            self.add(given, out, slice(number * size, min((number + 1) * size, given.numel())))
        self.finish()

    def add(self, given: torch.Tensor, out: torch.Tensor, part: slice) -> None:
        """Begin with one piece, as soon as there is room in flight.

        ``out`` may be ``given`` itself, but for int8.
        """
        while len(self._flying) >= self.plan.depth:
            self._advance()
        piece = self._piece(given[part], out[part], part)
        works = next(piece, None)
        if works is not None:  # one rank alone has nobody to wait for
            self._flying.append((piece, works))

    def finish(self) -> None:
        """Until nothing is in flight."""
        while self._flying:
            self._advance()

    def _advance(self) -> None:
        piece, works = self._flying.popleft()
        for work in works:
            work.wait()
        self._pieces += 1
        self.rank.beat(step=self._pieces)
        following = next(piece, None)
        if following is not None:
            self._flying.append((piece, following))

    # -- pieces --------------------------------------------------------------------------------

    def _piece(self, given: torch.Tensor, out: torch.Tensor, part: slice) -> Piece:
        if self.plan.compression == "int8":
            yield from self._quantised(given, out, part)
            return
        half = self.plan.compression == "fp16"
        buffer = given.half() if half else out
        if not half and out.data_ptr() != given.data_ptr():
            out.copy_(given)
        few = buffer.numel() < self.rank.world  # too few to be split
        match "server" if few and self.plan.algorithm == "ring" else self.plan.algorithm:
            case "gloo":
                yield [self.gloo.allreduce([buffer])]
            case "ring":
                yield from self._ring(buffer)
            case "tree":
                yield from self._tree(buffer)
            case _:
                yield from self._server(buffer)
        if half:
            out.copy_(buffer)

    def _ring(self, buffer: torch.Tensor) -> Piece:
        """Reduce-scatter, then all-gather, each to the right neighbour (Patarasuk and Yuan, 2009)."""
        world, me = self.rank.world, self.rank.rank
        right, left = (me + 1) % world, (me - 1) % world
        parts = buffer.tensor_split(world)
        tags = self._tags(2 * world)
        for step in range(world - 1):
            outgoing, incoming = parts[(me - step) % world], parts[(me - step - 1) % world]
            room = torch.empty_like(incoming)
            yield [self._send(outgoing, right, tags + step), self._receive(room, left, tags + step)]
            incoming += room
        for step in range(world - 1):
            outgoing, incoming = parts[(me - step + 1) % world], parts[(me - step) % world]
            tag = tags + world + step
            yield [self._send(outgoing, right, tag), self._receive(incoming, left, tag)]

    def _tree(self, buffer: torch.Tensor) -> Piece:
        """Up a binomial tree to rank 0, and down again."""
        world, me = self.rank.world, self.rank.rank
        tags = self._tags(2 * world.bit_length())
        distances = [1 << k for k in range((world - 1).bit_length())]
        joined = len(distances)
        for level, distance in enumerate(distances):
            if me & distance:
                yield [self._send(buffer, me - distance, tags + level)]
                joined = level
                break
            if me + distance < world:
                room = torch.empty_like(buffer)
                yield [self._receive(room, me + distance, tags + level)]
                buffer += room
        down = tags + world.bit_length()
        if me:
            yield [self._receive(buffer, me - (1 << joined), down + joined)]
        for level in reversed(range(joined)):
            if me + distances[level] < world:
                yield [self._send(buffer, me + distances[level], down + level)]

    def _server(self, buffer: torch.Tensor) -> Piece:
        """Rank 0 adds up what all send, and sends it back."""
        world, tags = self.rank.world, self._tags(2)
        if self.rank.rank:
            yield [self._send(buffer, 0, tags)]
            yield [self._receive(buffer, 0, tags + 1)]
            return
        rooms = [torch.empty_like(buffer) for _ in range(world - 1)]
        yield [self._receive(room, peer + 1, tags) for peer, room in enumerate(rooms)]
        for room in rooms:
            buffer += room
        yield [self._send(buffer, peer, tags + 1) for peer in range(1, world)]

    def _quantised(self, given: torch.Tensor, out: torch.Tensor, part: slice) -> Piece:
        """8 bits an element and one scale a piece, to every other rank; all add up the same numbers."""
        assert self.residual is not None
        world, me, tags = self.rank.world, self.rank.rank, self._tags(1)
        owed = self.residual[part]
        wanted = given + owed
        packed = _pack(wanted)
        rooms = [packed if peer == me else torch.empty_like(packed) for peer in range(world)]
        others = [peer for peer in range(world) if peer != me]
        works = [self._send(packed, peer, tags) for peer in others]
        yield works + [self._receive(rooms[peer], peer, tags) for peer in others]
        torch.sub(wanted, _unpack(packed), out=owed)
        total = torch.zeros_like(wanted)
        for room in rooms:  # in the order of ranks, so that all get the same bits
            total += _unpack(room)
        out.copy_(total)

    # -- messages ------------------------------------------------------------------------------

    def _tags(self, count: int) -> int:
        """The first of so many that no other piece in flight has."""
        first, self._tag = self._tag, (self._tag + count) % (1 << 20)
        return first

    def _send(self, tensor: torch.Tensor, peer: int, tag: int) -> Any:
        return self.gloo.send([tensor], peer, tag)

    def _receive(self, tensor: torch.Tensor, peer: int, tag: int) -> Any:
        return self.gloo.recv([tensor], peer, tag)


def _pack(values: torch.Tensor) -> torch.Tensor:
    """The scale as four bytes, then a byte an element."""
    scale = (values.abs().max() / 127).clamp(min=1e-30).float().reshape(1)
    rounded = (values / scale).round_().clamp_(-127, 127).to(torch.int8)
    return torch.cat([scale.view(torch.int8), rounded])


def _unpack(packed: torch.Tensor) -> torch.Tensor:
    scale = packed[:4].clone().view(torch.float32)
    return packed[4:].float() * scale
