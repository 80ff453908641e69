"""A plan in a program that runs: which rank a process is, and PyTorch's DeviceMesh.  Each function
takes a plan or a plan file's path."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple, Union

from .errors import InvalidInput, LinkwiseError, UsageError
from .plan import Plan

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

Place = Tuple[str, int]  # a host's name in the cluster file, a GPU's number on it

MESH_NAMES = ("pp", "dp", "cp", "tp")


def megatron_ranks(plan: Union[Plan, str]) -> Dict[Place, int]:
    """The global rank of each (host, GPU).

    Megatron derives every group from the rank, in the order tp-cp-ep-dp-pp: a process that takes
    this one as RANK before init_process_group is where the plan has it.
    """
    return {(rank.node, rank.gpu): rank.rank for rank in Plan.of(plan).ranks}


def here(plan: Union[Plan, str], host: Optional[str] = None) -> Place:
    """Where this process runs, in the plan's names.

    Under exec.sh it is what that says (LINKWISE_HOST, LINKWISE_GPU).  Else the host is the one of
    this name (None: uname -n) or, where one of the two is short, the only one that is the same
    up to the first dot; and the GPU is entry LOCAL_RANK of CUDA_VISIBLE_DEVICES, an index or a
    UUID of the cluster file, or LOCAL_RANK itself.

    Raises InvalidInput where the plan has no such host or GPU, UsageError without LOCAL_RANK.
    """
    plan = Plan.of(plan)
    name = host or os.environ.get("LINKWISE_HOST") or os.uname().nodename
    hosts = {rank.node for rank in plan.ranks}
    short = name.split(".")[0]
    alike = [h for h in hosts if h.split(".")[0] == short and short in (h, name)]
    if name not in hosts and len(alike) != 1:
        raise InvalidInput(f"host {name}: expected one of the plan's, found {len(alike)} like it")
    place = (name if name in hosts else alike[0], _gpu(plan))
    if place not in megatron_ranks(plan):
        raise InvalidInput(f"GPU {place[1]} of host {place[0]}: the plan has no rank there")
    return place


def _gpu(plan: Plan) -> int:
    """The machine's number of this process's GPU."""
    said = os.environ.get("LINKWISE_GPU")
    if said is None:
        local = os.environ.get("LOCAL_RANK")
        if local is None or not local.isdigit():
            raise UsageError(f"LOCAL_RANK: expected a number, as torchrun sets it; found {local!r}")
        visible = [v for v in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if v]
        if visible and int(local) >= len(visible):
            raise InvalidInput(f"LOCAL_RANK {local}: CUDA_VISIBLE_DEVICES has {len(visible)} GPUs")
        said = visible[int(local)] if visible else local
    if said.isdigit():
        return int(said)
    for node in plan.document["cluster"].get("nodes", []):
        if said in node.get("gpu_uuid", []):
            return int(node["gpu_uuid"].index(said))
    raise InvalidInput(f"GPU {said}: expected a number, or a UUID that the cluster file has")


def mesh(plan: Union[Plan, str], places: Optional[Sequence[Place]] = None) -> List[Any]:
    """Ranks as nested lists [pp][dp][cp][tp]: entry (p, d, c, t) is the rank at that place.

    places: where the job's ranks really run, [ranks] (host, GPU), as here gives them; None: where
    the plan has them.  numpy.array of the answer is the matrix.

    Raises InvalidInput where places are not those of the plan, each once.
    """
    plan = Plan.of(plan)
    planned = megatron_ranks(plan)
    order = list(range(len(planned)))
    if places is not None:
        at = {planned.get((place[0], place[1]), -1): rank for rank, place in enumerate(places)}
        if len(places) != len(planned) or sorted(at) != order:
            raise InvalidInput(
                f"places: expected the plan's {len(planned)} GPUs, each once, found "
                f"{len(at.keys() & set(order))} of them in {len(places)}"
            )
        order = [at[rank] for rank in order]
    nested: List[Any] = order
    for axis in reversed(MESH_NAMES[1:]):
        n = plan.degrees[axis]
        nested = [nested[i : i + n] for i in range(0, len(nested), n)]
    return nested


def _choose_device(device_type: str) -> None:
    """Device LOCAL_RANK, where the program has chosen none yet.

    DeviceMesh of earlier releases would take the rank modulo the number of visible devices, which
    is another one as soon as ranks are interleaved or nodes hold unlike numbers of them.
    """
    devices: Any = getattr(importlib.import_module("torch"), device_type, None)
    local = os.environ.get("LOCAL_RANK", "")
    if device_type != "cpu" and local.isdigit() and devices and not devices.is_initialized():
        devices.set_device(int(local))


def torch_device_mesh(plan: Union[Plan, str], device_type: str = "cuda") -> DeviceMesh:
    """The plan as a DeviceMesh with dimensions "pp", "dp", "cp", "tp", for a job that is running.

    All ranks call it after init_process_group.  They tell each other where they are (over gloo),
    so that it holds under any launcher, in whatever order that has numbered them.

    Raises InvalidInput where a rank is on a GPU that the plan does not use, or the job has
    another size; LinkwiseError where PyTorch (2.2 or later) is missing or not initialised.
    """
    try:
        from torch.distributed.device_mesh import DeviceMesh

        dist: Any = importlib.import_module("torch.distributed")
    except ImportError as why:
        raise LinkwiseError(f"torch_device_mesh: PyTorch 2.2 or later is needed: {why}") from why
    if not dist.is_initialized():
        raise LinkwiseError("torch_device_mesh: call torch.distributed.init_process_group first")
    plan = Plan.of(plan)
    # A rank that finds no place says so to all: they fail together, and nobody waits.
    try:
        mine: Any = here(plan)
    except LinkwiseError as why:
        mine = f"rank {dist.get_rank()}: {why}"
    all_places: List[Any] = [None] * dist.get_world_size()
    group = dist.new_group(backend="gloo")
    dist.all_gather_object(all_places, mine, group=group)
    dist.destroy_process_group(group)
    lost = [place for place in all_places if isinstance(place, str)]
    if lost:
        raise InvalidInput("; ".join(lost))
    _choose_device(device_type)
    return DeviceMesh(device_type, mesh(plan, all_places), mesh_dim_names=MESH_NAMES)
