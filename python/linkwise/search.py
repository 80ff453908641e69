"""The search, and the launcher files of what it found."""

from __future__ import annotations

import threading
from ctypes import byref
from typing import Callable, List, NamedTuple, Optional, Union

from .cluster import Cluster
from .errors import UsageError
from .job import PROGRESS, Config, Job, Settings
from .library import Handle, call_noting, create, listed, text, to_struct, warn
from .model import Model, Profile
from .plan import Plan


class Progress(NamedTuple):
    """done of total units of work; best_step_s is inf before the first plan, lower_bound_s 0
    before the first bound."""

    done: int
    total: int
    best_step_s: float
    lower_bound_s: float


class _Search:
    """A search in a thread of its own: the caller's waits where Ctrl-C reaches it, and need not
    wait for the search to end then."""

    def __init__(self, progress: Optional[Callable[[Progress], object]]) -> None:
        self.progress = progress
        self.found: Optional[Handle] = None
        self.notes: List[str] = []
        self.failure: Optional[BaseException] = None
        self.stop = False
        self.done = threading.Event()
        self.on_progress = PROGRESS(self._on_progress)

    def _on_progress(self, _: object, done: int, total: int, best: float, bound: float) -> bool:
        try:
            if self.progress and not self.stop:
                self.stop = bool(self.progress(Progress(done, total, best, bound)))
        except BaseException as why:
            self.failure, self.stop = why, True
        return self.stop

    def _run(self, arguments: List[object]) -> None:
        try:
            self.found, self.notes = create("plan", "linkwise_search", *arguments)
        except BaseException as why:
            self.failure = self.failure or why
        finally:
            self.done.set()

    def run(self, arguments: List[object]) -> Plan:
        threading.Thread(target=self._run, args=(arguments,), name="linkwise").start()
        try:
            self.done.wait()
        except BaseException:
            self.stop = True
            raise
        if self.failure:
            raise self.failure
        assert self.found
        return Plan.found(self.found)


def plan(
    cluster: Union[Cluster, str],
    model: Union[Model, str],
    job: Job = Job(),
    fixed: Config = Config(),
    settings: Settings = Settings(),
    *,
    profile: Optional[str] = None,
    progress: Optional[Callable[[Progress], object]] = None,
) -> Plan:
    """Find the degrees and the placement with the shortest step.

    fixed: given members are fixed, the search chooses the others.  profile: a shipped name or a
    file, None is "megatron-core", off A100 and for experts its composed form.  progress is called
    now and then, from another thread; true ends the search with the best plan so far, and what it
    raises ends it and is raised here.  Ctrl-C raises KeyboardInterrupt at once; the search ends
    soon after, in the background.

    Raises NothingFits where nothing fits in memory or the GPUs are not connected, InvalidInput
    where nothing divides, UsageError for an unknown word.
    """
    if progress is not None and not callable(progress):
        raise UsageError(f"progress: expected a function, found {progress!r}")
    c, m, p = Cluster.of(cluster), Model.of(model), Profile(profile)
    search = _Search(progress)
    how = to_struct(Settings, settings)
    how.progress = search.on_progress
    found = search.run([c.pointer, m.pointer, p.pointer, byref(to_struct(Job, job)),
                        byref(to_struct(Config, fixed)), byref(how)])  # fmt: skip
    warn(search.notes)
    return found


def emit(plan: Union[Plan, str], to: str = "all", folder: str = "launch") -> None:
    """Write the files that put every rank on its planned GPU (docs/launch.md), all or none.

    plan: one, or a plan file's path; to: launchers(), "openmpi,slurm", or "all": those that cannot express the plan are warnings.
    Raises NothingFits where a launcher that was named cannot, FileError.
    """
    warn(call_noting("linkwise_plan_emit", Plan.of(plan).pointer, text(to), text(folder)))


def launchers() -> List[str]:
    """What emit writes for."""
    return listed("linkwise_launcher_at")
