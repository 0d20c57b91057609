"""Space files written from what other tools have: recordings, T1 files, configurations in Python."""
