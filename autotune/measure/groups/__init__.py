"""Objectives of several processes: ranks that are started, watched and ended as one."""
