"""Memory and step time of one configuration."""

from __future__ import annotations

from ctypes import byref
from dataclasses import dataclass
from typing import Optional, Union

from .cluster import Cluster
from .job import Config, Job
from .library import call_noting, fresh, from_struct, integer, optional, text, to_struct, warn
from .model import Model, Profile


@dataclass(frozen=True)
class Memory:
    """Bytes of one pipeline stage on one GPU.

    stage: which; peak_bytes: of the GPU; gpu_bytes: that the driver reports; limit_bytes: that a
    plan may use; oom_probability: NaN where the memory model has none; the rest sums to the peak.
    """

    stage: int
    peak_bytes: float
    gpu_bytes: float
    limit_bytes: float
    oom_probability: float
    weights_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    activations_bytes: float
    logits_bytes: float
    buffers_bytes: float
    overhead_bytes: float


@dataclass(frozen=True)
class Estimate:
    """Seconds of one optimizer step.

    compute_s to optimizer_s sum to step_s, along the stage and replica that end last;
    unmeasured_links: that the placement uses; lower_bound_s and default_order_step_s are NaN but
    for plans.
    """

    step_s: float
    tokens_per_s: float
    mfu: float
    compute_s: float
    tp_s: float
    cp_s: float
    ep_s: float
    bubble_s: float
    pp_s: float
    dp_s: float
    optimizer_s: float
    stage: int
    replica: int
    unmeasured_links: int
    lower_bound_s: float
    default_order_step_s: float


def mem(
    model: Union[Model, str],
    gpu: str,
    job: Job = Job(),
    config: Config = Config(),
    *,
    stage: int = -1,
    profile: Optional[str] = None,
) -> Memory:
    """Memory of a configuration on GPUs of a built-in type: gpu_types(), or "h100" for short.

    stage: 0 to pp - 1, or -1 for the fullest; profile: a shipped name or a file, None is
    "megatron-core", off A100 and for experts its composed form.  Raises UsageError for an unknown
    word, InvalidInput for what does not fit the model.
    """
    out = fresh(Memory)
    warn(
        call_noting(
            "linkwise_memory", Model.of(model).pointer, Profile(profile).pointer,
            byref(to_struct(Job, job)), byref(to_struct(Config, config)),
            text(gpu, "the name of a GPU type (gpu_types())"),
            integer(stage, "stage"), byref(out),
        )
    )  # fmt: skip
    return from_struct(Memory, out)  # type: ignore[no-any-return]


def time(
    cluster: Union[Cluster, str],
    model: Union[Model, str],
    job: Job = Job(),
    config: Config = Config(),
    *,
    profile: Optional[str] = None,
    cost_model: Optional[str] = None,
) -> Estimate:
    """Step time of a configuration in Megatron's order over the nodes as listed.

    cost_model: "critical-path" (None), "pipette" or "amp".  Raises as mem does.
    """
    out = fresh(Estimate)
    warn(
        call_noting(
            "linkwise_time", Cluster.of(cluster).pointer, Model.of(model).pointer,
            Profile(profile).pointer, byref(to_struct(Job, job)), byref(to_struct(Config, config)),
            optional(cost_model), byref(out),
        )
    )  # fmt: skip
    return from_struct(Estimate, out)  # type: ignore[no-any-return]
