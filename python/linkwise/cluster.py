"""Clusters, and their links as matrices."""

from __future__ import annotations

import math
import os
from ctypes import POINTER, byref, c_double
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Union

from .errors import FileError, UsageError
from .library import (
    call, create, fresh, from_struct, integers, json_text, library, listed, optional, several,
    text, text_of, warn,
)  # fmt: skip

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Node:
    """gpus: that are not drained, but all of a drained node; first_gpu: its number in the
    cluster."""

    name: Optional[str]
    gpu_type: Optional[str]
    gpus: int
    first_gpu: int
    drained: bool


def _plain(values: Any) -> Any:
    """A NumPy array as lists, all else as it is."""
    return values.tolist() if hasattr(values, "tolist") else values


def _rows(matrix: Any, n: int, what: str) -> Any:
    """A number, or n rows of n as JSON has them: None for NaN.  Infinity is refused."""
    matrix = _plain(matrix)
    expected = f"{what}: expected a number or {n} rows of {n}, one a node"
    if isinstance(matrix, (int, float)):
        return matrix
    try:
        rows = [[None if x is None or math.isnan(x) else x for x in row] for row in matrix]
    except (TypeError, OverflowError) as why:
        raise UsageError(f"{expected}: {why}") from why
    if len(rows) != n or any(len(row) != n for row in rows):
        raise UsageError(expected)
    for i, row in enumerate(rows):
        for j, x in enumerate(row):
            if x is not None and math.isinf(x):
                raise UsageError(f"{what}[{i}][{j}]: expected a finite number or NaN, found {x}")
    return rows


class Cluster:
    """Nodes, GPUs and directed links: a cluster file's path, or a cluster on one line as in
    "2x8 h100-sxm5-80g intra:370 inter:48".

    Raises FileError or InvalidInput.
    """

    def __init__(self, path_or_line: str) -> None:
        words = text(path_or_line, 'a linkwise.Cluster, a path, or a line as "4x8 h100"')
        try:
            self._take("linkwise_cluster_read", words)
        except FileError as why:
            line = '' if os.path.exists(words) else '; a cluster on one line is as "4x8 h100"'
            raise FileError(f"{why}{line}") from None

    @classmethod
    def from_matrix(
        cls,
        bandwidth: ArrayLike,
        *,
        gpu_type: Union[str, Sequence[str]],
        gpus: int,
        intra: float,
        latency_us: Union[ArrayLike, float] = 12.0,
        intra_latency_us: float = 8.0,
        node_total: Union[Sequence[float], float, None] = None,
        nodes: Optional[Sequence[str]] = None,
        name: str = "cluster",
    ) -> Cluster:
        """A cluster of n nodes with equally many GPUs.

        bandwidth: [n, n] GB/s, entry [i, j] is from node i to node j, of one GPU pair alone; NaN
        or None: nobody measured it; the diagonal is ignored.  gpu_type: one (gpu_types()), or one
        a node.  intra: GB/s between GPUs of a node.  latency_us: [n, n] or one number.
        node_total: GB/s that all GPUs of a node reach together off it, one or n; None: as many
        as each pair alone.  nodes: n host names, else n0, n1, ...

        Raises UsageError for a matrix of another shape, InvalidInput for values that cannot be.
        """
        rows = _plain(bandwidth)
        n = len(rows) if isinstance(rows, (list, tuple)) else 0
        hosts = [f"n{i}" for i in range(n)] if nodes is None else several(nodes, "nodes")
        types = [gpu_type] * n if isinstance(gpu_type, str) else several(gpu_type, "gpu_type")
        if not n or len(hosts) != n or len(types) != n:
            raise UsageError(
                "bandwidth, nodes, gpu_type: expected n rows of n, n names and one type or n, "
                f"found {n} rows, {len(hosts)} names and {len(types)} types"
            )
        inter: Dict[str, Any] = {
            "bandwidth_gb_per_s": _rows(rows, n, "bandwidth"),
            "latency_us": _rows(latency_us, n, "latency_us"),
        }
        if node_total is not None:
            inter["node_gb_per_s"] = _plain(node_total)
        return cls.from_json(
            {
                "version": 1,
                "name": name,
                "nodes": [
                    {"name": host, "gpus": gpus, "gpu_type": kind}
                    for host, kind in zip(hosts, types)
                ],
                "links": {
                    "intra": {"bandwidth_gb_per_s": intra, "latency_us": intra_latency_us},
                    "inter": inter,
                },
            }
        )

    @classmethod
    def from_json(cls, document: Any, folder: Optional[str] = None) -> Cluster:
        """From a cluster file's text, or the same as a dict (docs/cluster.md).

        folder: where relative .npy names are looked up; None is the current one.
        """
        cluster = cls.__new__(cls)
        is_text = isinstance(document, str)
        words = text(document) if is_text else json_text(document, "cluster")
        cluster._take("linkwise_cluster_parse", words, optional(folder))
        return cluster

    @classmethod
    def of(cls, what: Union[Cluster, str]) -> Cluster:
        """The cluster itself, or that of a path or line."""
        return what if isinstance(what, Cluster) else cls(what)

    def _take(self, function: str, *arguments: Optional[bytes]) -> None:
        self.pointer, notes = create("cluster", function, *arguments)
        warn(notes, stacklevel=4)

    def to_json(self) -> str:
        """The cluster file's text, with matrices inline."""
        return text_of("linkwise_cluster_to_json", self.pointer)

    @property
    def nodes(self) -> List[Node]:
        nodes: List[Node] = []
        for i in range(library().linkwise_cluster_nodes(self.pointer)):
            out = fresh(Node)
            call("linkwise_cluster_node", self.pointer, i, byref(out))
            nodes.append(from_struct(Node, out))
        return nodes

    @property
    def gpus(self) -> int:
        """How many, without those drained on nodes in use; they are numbered node by node."""
        return int(library().linkwise_cluster_gpus(self.pointer))

    # ---- matrices, which need NumPy ----

    def inter_bandwidth(self) -> NDArray[np.float64]:
        """[nodes, nodes] GB/s: entry [i, j] is from node i's first GPU to node j's; NaN on the
        diagonal and where nobody measured it."""
        return self.bandwidth([node.first_gpu for node in self.nodes])

    def inter_latency(self) -> NDArray[np.float64]:
        """The same in microseconds."""
        return self.latency([node.first_gpu for node in self.nodes])

    def bandwidth(self, gpus: Optional[Sequence[int]] = None) -> NDArray[np.float64]:
        """[n, n] GB/s among some GPUs, by their numbers in the cluster (None: all); NaN on the
        diagonal and where nobody measured it.  Raises UsageError for a GPU that is not there."""
        return self._among(range(self.gpus) if gpus is None else gpus, "bandwidth")

    def latency(self, gpus: Optional[Sequence[int]] = None) -> NDArray[np.float64]:
        """The same in microseconds."""
        return self._among(range(self.gpus) if gpus is None else gpus, "latency")

    def _among(self, gpus: Sequence[int], what: str) -> NDArray[np.float64]:
        import numpy as np

        numbers = integers(gpus, "gpus")
        n = len(numbers)
        out = np.empty((n, n))
        entries = out.ctypes.data_as(POINTER(c_double))
        bandwidth = what == "bandwidth"
        call(
            "linkwise_cluster_links", self.pointer, numbers, n,
            entries if bandwidth else None, None if bandwidth else entries,
        )  # fmt: skip
        return out / 1e9 if bandwidth else out * 1e6

    def __repr__(self) -> str:
        nodes = library().linkwise_cluster_nodes(self.pointer)
        return f"<linkwise.Cluster of {nodes} nodes, {self.gpus} GPUs>"


def gpu_types() -> List[str]:
    """Names of the built-in GPU types."""
    return listed("linkwise_gpu_type_at")
