"""A Ray cluster of several nodes on this machine's loopback, in a process of its own: `python -m tests.pool.cluster`.

It prints the head's address, then takes lines: `add CORES DEVICES` (such as `add 1 4,5`), `kill NUMBER` (a node, from 0, at
once), `head` (the head, at once), `version` (the cluster says that it runs another Ray), `end`. It answers each with a line.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

_MEMORY = 80 * 2**20


def main() -> None:
    os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ADDRESS": ""}
    from ray.cluster_utils import Cluster

    own = {"object_store_memory": _MEMORY, "node_ip_address": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **own})
    nodes: list[Any] = []
    _tell(cluster.address)
    for line in sys.stdin:
        what, *words = line.split()
        if what == "add":
            devices = words[1].split(",") if len(words) > 1 else []
            variables = {"ASCEND_RT_VISIBLE_DEVICES": ",".join(devices)} if devices else {}
            labels = {"node": str(len(nodes))}
            nodes.append(
                cluster.add_node(num_cpus=int(words[0]), resources={"NPU": len(devices)} if devices else {}, env_vars=variables,
                                 labels=labels, **own)
            )  # fmt: skip
        elif what == "kill":
            cluster.remove_node(nodes[int(words[0])], allow_graceful=False)
        elif what == "head":
            cluster.remove_node(cluster.head_node, allow_graceful=False)
        elif what == "version":
            _say_another_version(cluster)
        else:
            break
        _tell("done")
    with contextlib.suppress(Exception):
        cluster.shutdown()


def _say_another_version(cluster: Any) -> None:
    from ray._raylet import GcsClient

    client = GcsClient(address=cluster.address)
    said = json.loads(client.internal_kv_get(b"CLUSTER_METADATA", namespace=b"cluster"))
    client.internal_kv_put(b"CLUSTER_METADATA", json.dumps({**said, "ray_version": "1.0.0"}).encode(), True, namespace=b"cluster")


def _tell(words: str) -> None:
    print(f"cluster: {words}", flush=True)


class Running:
    """A cluster that runs; `address` is its head's."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.address = self._answer()

    def do(self, words: str) -> None:
        """Have one line done."""
        assert self._process.stdin is not None
        self._process.stdin.write(words + "\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("cluster: "):
                return line.removeprefix("cluster: ").strip()
        raise RuntimeError("the cluster has ended")


@contextlib.contextmanager
def running(*nodes: str) -> Iterator[Running]:
    """Start a cluster with these nodes, as `add` takes them."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.pool.cluster"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    try:
        cluster = Running(process)
        for node in nodes:
            cluster.do(f"add {node}")
        yield cluster
    finally:
        with contextlib.suppress(OSError):
            process.communicate("end\n", timeout=120)
        process.kill()
        process.wait()


if __name__ == "__main__":
    main()
