"""A Ray cluster of a few nodes on this machine, bound to the loopback interface."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_OBJECTS = 80 << 20  # bytes of a node's object store, about the least that Ray takes


@contextmanager
def ray_cluster(*cpus: int) -> Iterator[Any]:
    """``ray.cluster_utils.Cluster`` with a node for each number of CPUs, the first its head; the
    test is skipped where Ray is not installed."""
    pytest.importorskip("ray", reason='needs `pip install "numtok[ray]"`')
    from ray.cluster_utils import Cluster

    each: dict[str, Any] = {
        "object_store_memory": _OBJECTS,
        "node_ip_address": "127.0.0.1",
        "include_dashboard": False,
    }
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):
        patch.setitem(os.environ, "RAY_USAGE_STATS_ENABLED", "0")
        cluster: Any = Cluster()
        try:
            for count in cpus:
                cluster.add_node(num_cpus=count, **each)
            yield cluster
        finally:
            cluster.shutdown()
