"""Whether two compiled files are the same code: a hash of an ELF file without what names its origin."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

_SAYS_WHENCE = (".note", ".comment", ".debug", ".nv_debug", ".line", ".symtab", ".strtab", ".shstrtab")
"""Prefixes of the names of sections that say where code comes from (build ids, versions, paths, lines, local
names) and not what it does. They are left out of the hash."""

_NO_BITS = 8
"""The type of a section that takes memory but no room in the file (ELF specification, sh_type)."""


def code_fingerprint(content: bytes) -> str:
    """16 hexadecimal digits; equal for shared libraries, or cubins, whose code and data are the same.

    Any content that is not a whole 64-bit little-endian ELF file is hashed byte for byte.
    """
    code = hashlib.sha256()
    try:
        for name, kind, size, section in _sections(content):
            if not name.startswith(_SAYS_WHENCE):
                code.update(f"{name}\0{kind}\0{size}\0".encode())
                code.update(section)
    except (struct.error, ValueError, IndexError):
        code = hashlib.sha256(content)
    return code.hexdigest()[:16]


def _sections(content: bytes) -> Iterator[tuple[str, int, int, bytes]]:
    """Name, type, size and content of each section, by the tables of the ELF-64 object format."""
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", content, 0x28)
    entry_size, count, names_at = struct.unpack_from("<HHH", content, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", content, table + i * entry_size) for i in range(count)]
    if not headers:
        raise ValueError("no sections")
    names = headers[names_at][4]
    for name_at, kind, _flags, _address, offset, size in headers:
        begin = names + name_at
        name = content[begin : content.index(b"\0", begin)].decode("utf-8", "replace")
        inside = b"" if kind == _NO_BITS else content[offset : offset + size]
        yield name, kind, size, inside
