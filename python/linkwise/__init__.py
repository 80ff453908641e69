"""How a training job is split over a GPU cluster, and which rank runs on which GPU.

    import linkwise as lw

    plan = lw.plan("4x8 h100-sxm5-80g intra:370 inter:48", "llama-2-70b", lw.Job(4096, 1024))
    print(plan.degrees, plan.step_s)
    lw.emit(plan, to="slurm", folder="launch")

Units are seconds, bytes and bytes per second, and GB/s (1e9 bytes) and microseconds in
matrices.  What fails raises a LinkwiseError; what was assumed is a LinkwiseWarning.  Plan.read,
mesh, megatron_ranks, here and torch_device_mesh need no liblinkwise.so: a training container
can have this package alone.
"""

from .cluster import Cluster, gpu_types
from .errors import (
    FileError,
    InvalidInput,
    LibraryNotFound,
    LinkwiseError,
    LinkwiseWarning,
    NothingFits,
    OutOfMemory,
    UsageError,
)
from .estimates import Estimate, Memory, mem, time
from .job import Config, Job, Settings
from .library import version
from .model import Model, models
from .plan import Plan, Rank
from .ranks import here, megatron_ranks, mesh, torch_device_mesh
from .search import Progress, emit, launchers, plan

__all__ = [
    "Cluster", "Config", "Estimate", "FileError", "InvalidInput", "Job", "LibraryNotFound",
    "LinkwiseError", "LinkwiseWarning", "Memory", "Model", "NothingFits", "OutOfMemory", "Plan",
    "Progress", "Rank", "Settings", "UsageError", "emit", "gpu_types", "here", "launchers",
    "megatron_ranks", "mem", "mesh", "models", "plan", "time", "torch_device_mesh", "version",
]  # fmt: skip
