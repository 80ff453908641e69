"""See ranks.t."""
import os
import sys
import types
from unittest import mock

import linkwise as lw
from plans import plan
from tap import refused, run

PLAN = plan(["a.x", "b.x", "b.y"], 4, pp=2, dp=3, tp=2)


def here(host, **variables):
    with mock.patch.dict(os.environ, variables, clear=True):
        return lw.here(PLAN, host)


def test_ranks():
    "ranks have Megatron's coordinates"
    moe = plan(["a", "b"], 8, tp=2, cp=2, dp=2, pp=2, ep=4, etp=1)
    at = {(r.tp, r.cp, r.dp, r.pp): r for r in moe.ranks}
    assert len(at) == 16
    for r in moe.ranks:
        assert r.rank == r.tp + 2 * (r.cp + 2 * (r.dp + 2 * r.pp)), r
        assert r.ep == r.rank % 8 // 1 % 4, r
    assert lw.megatron_ranks(PLAN)["b.y", 0] == 0 and lw.megatron_ranks(PLAN)["a.x", 3] == 11


def test_mesh():
    "mesh is [pp][dp][cp][tp]; a job in another order has its own numbers at the plan's places"
    nested = lw.mesh(PLAN)
    assert nested == [[[[0, 1]], [[2, 3]], [[4, 5]]], [[[6, 7]], [[8, 9]], [[10, 11]]]]
    places = [(host, gpu) for host in ("a.x", "b.x", "b.y") for gpu in range(4)]
    moved = lw.mesh(PLAN, places)
    for rank in PLAN.ranks:
        assert places[moved[rank.pp][rank.dp][rank.cp][rank.tp]] == (rank.node, rank.gpu)
    refused(lw.InvalidInput, "11 of them in 12", lw.mesh, PLAN, places[:-1] + places[:1])
    refused(lw.InvalidInput, "11 of them in 11", lw.mesh, PLAN, places[1:])
    refused(lw.InvalidInput, "11 of them in 12", lw.mesh, PLAN, places[1:] + [("c", 0)])


def test_here():
    "a process finds its host and GPU"
    assert here("b.x", LOCAL_RANK="2") == ("b.x", 2)
    assert here("a", LOCAL_RANK="0", CUDA_VISIBLE_DEVICES="3,1") == ("a.x", 3)
    assert here("a.x", LOCAL_RANK="1", CUDA_VISIBLE_DEVICES="GPU-a.x-2,GPU-a.x-1") == ("a.x", 1)
    assert here(None, LINKWISE_HOST="b.y", LINKWISE_GPU="1", LOCAL_RANK="0",
                CUDA_VISIBLE_DEVICES="GPU-x") == ("b.y", 1)


def test_nowhere():
    "... or says why it has no place in the plan"
    refused(lw.InvalidInput, "host b: expected one of the plan's, found 2", here, "b", LOCAL_RANK="0")
    refused(lw.InvalidInput, "host a.z", here, "a.z", LOCAL_RANK="0")
    refused(lw.InvalidInput, "GPU 4 of host a.x: the plan has no rank", here, "a", LOCAL_RANK="4")
    refused(lw.UsageError, "LOCAL_RANK: expected a number", here, "a")
    refused(lw.InvalidInput, "has 1 GPUs", here, "a", LOCAL_RANK="1", CUDA_VISIBLE_DEVICES="0")
    refused(lw.InvalidInput, "GPU MIG-1", here, "a", LOCAL_RANK="0", CUDA_VISIBLE_DEVICES="MIG-1")


def test_device():
    "the program's device is LOCAL_RANK where it has chosen none"
    from linkwise.ranks import _choose_device
    for kind, chosen, variables, want in (
            ("cuda", False, dict(LOCAL_RANK="2"), [mock.call(2)]), ("cuda", True, dict(LOCAL_RANK="2"), []),
            ("cuda", False, {}, []), ("cpu", False, dict(LOCAL_RANK="2"), []), ("tpu", False, dict(LOCAL_RANK="2"), [])):
        devices = mock.Mock(**{"is_initialized.return_value": chosen})
        torch = types.SimpleNamespace(cuda=devices, cpu=devices)
        with mock.patch.dict(sys.modules, torch=torch), mock.patch.dict(os.environ, variables, clear=True):
            _choose_device(kind)
        assert devices.set_device.call_args_list == want, (kind, chosen, variables)


def test_library():
    "what needs the library says where it was looked for"
    why = refused(lw.LibraryNotFound, "/nowhere: cannot open", lw.version)
    assert "LINKWISE_LIBRARY" in str(why)
    with mock.patch.dict(os.environ, clear=True), mock.patch("ctypes.CDLL", side_effect=OSError("no")):
        assert str(refused(lw.LibraryNotFound, "", lw.version)).count("no;") == 3


if __name__ == "__main__":
    run(dict(globals()))
