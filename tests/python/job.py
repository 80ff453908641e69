"""See torch.t.  DeviceMesh is PyTorch's own where that has one (2.2), else what it is given."""
import multiprocessing
import os
import socket
import sys
import types

import torch
import torch.distributed as dist

import linkwise as lw
from plans import plan
from tap import run

PLAN = plan(["h0", "h1"], 2, pp=2, tp=2)
FORK = multiprocessing.get_context("fork")  # PyTorch is imported once


try:
    import torch.distributed.device_mesh
except ImportError:
    module = types.ModuleType("torch.distributed.device_mesh")
    module.DeviceMesh = lambda kind, mesh, mesh_dim_names: types.SimpleNamespace(
        mesh=mesh, mesh_dim_names=mesh_dim_names)
    sys.modules[module.__name__] = module


def rank_main(tasks, answers, own):
    """One rank of every job, in a process of its own."""
    for megatron, variables in iter(tasks.get, None):
        os.environ.update(own, **variables)
        if megatron:
            os.environ["RANK"] = str(lw.megatron_ranks(PLAN)[lw.here(PLAN)])
        dist.init_process_group("gloo")
        said = {"place": (os.environ["LINKWISE_HOST"], int(os.environ["LOCAL_RANK"])), "error": None}
        try:
            mesh = lw.torch_device_mesh(PLAN, "cpu")
            said.update(mesh=torch.as_tensor(mesh.mesh).tolist(), names=mesh.mesh_dim_names)
        except lw.LinkwiseError as why:
            said["error"] = str(why)
        answers.put((dist.get_rank(), said))
        dist.barrier()
        dist.destroy_process_group()


class Ranks:
    """Four of them, in the order of hosts and GPUs, which start once."""

    def __init__(self):
        self.answers, self.tasks, self.processes = FORK.Queue(), [FORK.Queue() for _ in range(4)], []
        for rank, tasks in enumerate(self.tasks):
            own = dict(RANK=str(rank), WORLD_SIZE="4", LOCAL_RANK=str(rank % 2),
                       LINKWISE_HOST=f"h{rank // 2}", MASTER_ADDR="127.0.0.1")
            self.processes.append(FORK.Process(target=rank_main, args=(tasks, self.answers, own)))
            self.processes[-1].start()

    def end(self):
        for tasks in self.tasks:
            tasks.put(None)
        for process in self.processes:
            process.join(10)
            process.kill()


def job(megatron=False, **changed):
    """What each rank said, by rank; the last has changed variables."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for rank, tasks in enumerate(RANKS.tasks):
        tasks.put((megatron, dict(changed if rank == 3 else {}, MASTER_PORT=str(port))))
    return [said for _, said in sorted(RANKS.answers.get(timeout=60) for _ in RANKS.tasks)]


def test_mesh():
    "under any order of ranks the mesh has each at its planned place, and all have the same"
    said = job()
    assert said[0]["names"] == ("pp", "dp", "cp", "tp")
    for rank in PLAN.ranks:
        at = said[0]["mesh"][rank.pp][rank.dp][rank.cp][rank.tp]
        assert said[at]["place"] == (rank.node, rank.gpu)
    assert said[0]["mesh"] != lw.mesh(PLAN)
    assert all(one["mesh"] == said[0]["mesh"] for one in said)


def test_megatron():
    "with RANK from megatron_ranks the job has the plan's order"
    said = job(megatron=True)
    assert [one["place"] for one in said] == [(r.node, r.gpu) for r in PLAN.ranks]
    assert all(one["mesh"] == lw.mesh(PLAN) for one in said)


def test_lost():
    "a rank that is nowhere in the plan is an error in all of them"
    said = job(LINKWISE_HOST="h9")
    assert all("rank 3: host h9" in one["error"] for one in said), said


if __name__ == "__main__":
    RANKS = Ranks()
    try:
        run(dict(globals()))
    finally:
        RANKS.end()
