"""A read-only dictionary: a cached answer is given to many callers, and none may change it for the others."""

from __future__ import annotations

from typing import Any, NoReturn


class Fixed(dict[str, Any]):
    """A dictionary that refuses to be changed. Unlike a ``MappingProxyType`` it can be pickled.

    ``dict(fixed)`` and ``fixed | {...}`` are dictionaries of the caller's own.
    """

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("an answer is read-only: dict(...) makes a copy that can be changed")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[Fixed], tuple[dict[str, Any]]]:
        return type(self), (dict(self),)
