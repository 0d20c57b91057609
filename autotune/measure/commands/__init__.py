"""Objectives that are programs: how each is given its knobs, run, heard and read."""
