"""How many elements a rank of a distributed product holds and sends, counted as it goes."""

from __future__ import annotations

import threading


class Count:
    """Elements that are held now, the most there ever were, and those that were sent; for several threads."""

    def __init__(self, held: int) -> None:
        self.now = self.most = held
        self.sent = 0
        self._lock = threading.Lock()

    def add(self, elements: int) -> None:
        with self._lock:
            self.now += elements
            self.most = max(self.most, self.now)

    def send(self, elements: int) -> None:
        """So many elements go to another rank."""
        with self._lock:
            self.sent += elements


class OnTheWay:
    """Copies that are sent to others, which ask for up to ``ahead`` panels before they need them.

    A copy is held until it has arrived. The thread that sends says so late where it waits for a core: whoever
    got it may have asked for the next one by then. So that is heard as well.
    """

    def __init__(self, count: Count, ahead: int) -> None:
        self._count = count
        self._ahead = ahead
        self._sizes: dict[tuple[int, int], int] = {}
        """By who gets it and the number of the panel."""

    def send(self, to: int, number: int, elements: int) -> None:
        """``to`` asks for this panel, and so has those of which it holds none any more."""
        for other, earlier in list(self._sizes):
            if other == to and earlier < number - self._ahead:
                self.arrived(other, earlier)
        self._sizes[to, number] = elements
        self._count.add(elements)

    def arrived(self, to: int, number: int) -> None:
        """It is held no longer; said again it changes nothing."""
        self._count.add(-self._sizes.pop((to, number), 0))
