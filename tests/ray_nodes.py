"""A local Ray cluster of a few nodes, bound to the loopback interface."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_OBJECTS = 80 << 20  # bytes per object store, about the minimum that Ray accepts


@contextmanager
def ray_cluster(*cpus: int) -> Iterator[Any]:
    """Start a ``ray.cluster_utils.Cluster`` with one node per CPU count; the first is its head.

    The test is skipped if Ray is not installed.
    """
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
