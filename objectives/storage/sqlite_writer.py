"""A process that writes transaction after transaction until it is killed; run by its path.

From stdin: a pickle of ``(file, knobs, transactions)``. To stdout: a letter for each row that was put
(``ROW``), and one for each transaction that was acknowledged (``COMMITTED``).
"""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

from sqlite_table import Table

ROW, COMMITTED = b"r", b"c"


def main() -> None:
    file, knobs, transactions = pickle.load(sys.stdin.buffer)
    table = Table(Path(file), knobs)
    for rows in transactions:
        table.begin()
        for removed, key, value in rows:
            table.put(removed, key, value)
            os.write(1, ROW)
        table.commit()
        os.write(1, COMMITTED)
    sys.stdin.buffer.read()  # nobody writes: it ends by being killed, with its table open


if __name__ == "__main__":
    main()
