"""Other people's tuners, one a file, driven by the benchmarks.

A peer runs in a process of its own (:mod:`benchmarks.peers.worker`), under the interpreter of an environment
that has its packages: some of them cannot share one. The files of peers therefore import nothing but
the standard library, each other and the packages of the peer. ``client``, ``recorded`` and ``described`` are
the benchmarks' side, and run under autotune's own interpreter.
"""
