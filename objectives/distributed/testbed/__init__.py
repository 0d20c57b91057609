"""A test bed on one machine: devices with cores, quotas and memory caps, and real links between them.

Each rank has a network namespace of its own whose only way out is a TUN interface. A switch in user space
(``wire.c``) holds the far ends, and hands each packet over when a link of that bandwidth and latency would.
Nothing has a name outside the processes that use it: when they end, however they end, the kernel takes
interfaces and namespaces down. Bandwidth and latency come out as asked within some per cent up to what the
machine can copy; :func:`testbed.trying.try_link` measures that.
"""

from testbed.network import ShapedNetwork, links_of, network_for, unable

__all__ = ["ShapedNetwork", "links_of", "network_for", "unable"]
