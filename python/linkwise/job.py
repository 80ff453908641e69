"""What is trained, how it is split, and what a search may do: structs of linkwise.h."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any, ClassVar, List, Optional, Sequence, Tuple

# Called now and then by the search: context, done, total, best_step_s, lower_bound_s.
PROGRESS = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.c_void_p, ctypes.c_long, ctypes.c_long, ctypes.c_double, ctypes.c_double
)


@dataclass(frozen=True)
class Job:
    """What is trained, whatever the split.  0 and None take the usual.

    seq: tokens of one sequence; global_batch: sequences of one optimizer step, for mem what fills
    the pipeline; precision: "bf16"
    (usual), "fp16", "fp8", "fp4", "fp32", "tf32"; attention: "flash" (usual), "fused", "unfused";
    fused_norm, fused_mlp, gathered_logits: "on", "off" (usual: the profile's); wta_crs: budget of
    WTA-CRS, 0 to 1, 0 is not used; lora: adapters alone are trained;
    tp_comm_overlap: collectives beside tensor-parallel products, as fused_norm.
    """

    seq: int = 0
    global_batch: int = 0
    precision: Optional[str] = None
    attention: Optional[str] = None
    fused_norm: Optional[str] = None
    fused_mlp: Optional[str] = None
    gathered_logits: Optional[str] = None
    wta_crs: float = 0.0
    lora: bool = False
    tp_comm_overlap: Optional[str] = None


@dataclass(frozen=True)
class Config:
    """Degrees and the other choices.  None is left open: a search looks for it; an estimate takes
    degrees of 1 (dp: what the GPUs leave; without a cluster the least that ep allows), ZeRO 1,
    nothing recomputed, 1F1B.

    dp does not count cp; micro_batch is in sequences; zero is 0 to 3; sequence_parallel 0 or 1;
    recompute "none", "selective", "full", "full:K", "layernorm,mlp"; schedule "1f1b", "gpipe",
    "interleaved", "zb1p"; layers one number a stage, for estimates alone; optimizer_bytes of
    optimizer state per parameter; offload "none", "optimizer", "all", "checkpoints"; shard
    data-parallel ranks over which ZeRO shards, 0 is all.
    """

    tp: Optional[int] = None
    pp: Optional[int] = None
    dp: Optional[int] = None
    cp: Optional[int] = None
    ep: Optional[int] = None
    etp: Optional[int] = None
    vpp: Optional[int] = None
    micro_batch: Optional[int] = None
    zero: Optional[int] = None
    sequence_parallel: Optional[int] = None
    recompute: Optional[str] = None
    schedule: Optional[str] = None
    layers: Optional[Sequence[int]] = field(default=None, metadata={"per": "pp"})
    optimizer_bytes: Optional[int] = None
    offload: Optional[str] = None
    shard: Optional[int] = None


@dataclass(frozen=True)
class Settings:
    """What a search may use, and how it looks.

    only, exclude, pin: host lists ("n[01-16,20]", "rack:r[1-2]") of nodes to use, to leave out,
    that must hold ranks; nodes: use at most so many, 0 is no limit; spares: leave so many idle;
    memory_limit_pct: of what the driver reports, 0 is the memory model's; oom_risk: above 0, a
    chance of running out instead; memory_model "linkwise", "fujii", "korthikanti"; granularity
    "auto", "node", "gpu"; objective "step", "gpu-hours"; cost_model "critical-path", "pipette",
    "amp"; threads: 0 is all cores; seed: the same gives the same plan; time_limit_s: 0 is none;
    effort: times the usual work, 0 is 1; top: configurations to list; tie: plans within this
    share of the best count as equal.
    """

    only: Optional[str] = None
    exclude: Optional[str] = None
    pin: Optional[str] = None
    nodes: int = 0
    spares: int = 0
    memory_limit_pct: float = 0.0
    oom_risk: float = 0.0
    memory_model: Optional[str] = None
    granularity: Optional[str] = None
    objective: Optional[str] = None
    cost_model: Optional[str] = None
    threads: int = 0
    seed: int = field(default=1, metadata={"c": ctypes.c_ulong})
    time_limit_s: float = 0.0
    effort: int = 0
    top: int = 5
    tie: float = 1e-3

    MORE: ClassVar[List[Tuple[str, Any]]] = [("progress", PROGRESS), ("context", ctypes.c_void_p)]
