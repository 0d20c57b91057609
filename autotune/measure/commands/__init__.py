"""Objectives that are programs: how they are given their knobs and run, and how their metrics are read."""
