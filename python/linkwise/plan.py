"""Plans: a configuration and a GPU for every rank.

A plan is its document (docs/plan.md); the library is asked only for what needs it.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from .errors import FileError, InvalidInput
from .library import Handle, call, create, text, text_of, warn


class Rank(NamedTuple):
    """gpu: the machine's number of it, as CUDA_VISIBLE_DEVICES takes it; tp to pp: its place in
    each group, in Megatron's order tp-cp-ep-dp-pp."""

    rank: int
    node: str
    gpu: int
    tp: int
    cp: int
    ep: int
    dp: int
    pp: int


class Plan:
    """A plan file's text.  Plan.read reads one, linkwise.plan finds one.

    Raises InvalidInput where the text is no plan.
    """

    def __init__(self, words: str, name: str = "plan") -> None:
        try:
            self.document: Dict[str, Any] = json.loads(words)
            self.degrees: Dict[str, int] = dict(self.document["degrees"])
            self.ranks: List[Rank] = self._ranks()
        except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as why:
            what = f"no {why}" if isinstance(why, KeyError) else why
            raise InvalidInput(f"{name}: expected a plan with degrees and ranks: {what}") from why
        self._words = words
        self._handle: Optional[Handle] = None

    @classmethod
    def read(cls, path: str) -> Plan:
        """From a plan file; raises FileError, too."""
        try:
            with open(text(path, "a plan file's path"), encoding="utf-8") as file:
                return cls(file.read(), path)
        except UnicodeDecodeError as why:
            raise InvalidInput(f"{path}: expected a plan: {why}") from why
        except OSError as why:
            raise FileError(f"{path}: {why.strerror}") from why

    @classmethod
    def of(cls, what: Union[Plan, str]) -> Plan:
        """The plan itself, or that of a path."""
        return what if isinstance(what, Plan) else cls.read(what)

    def _ranks(self) -> List[Rank]:
        """By their numbers; coordinates are those of the number (docs/plan.md)."""
        tp, cp, dp, pp = (self.degrees[axis] for axis in ("tp", "cp", "dp", "pp"))
        ep, etp = self.degrees.get("ep", 1), self.degrees.get("etp", tp)
        places = {r["rank"]: (str(r["node"]), int(r["gpu"])) for r in self.document["ranks"]}
        if sorted(places) != list(range(tp * cp * dp * pp)):
            raise ValueError(f"{len(places)} ranks for degrees of {tp * cp * dp * pp}")
        return [
            Rank(
                r, *places[r], r % tp, r // tp % cp, r % (tp * cp * dp) // etp % ep,
                r // (tp * cp) % dp, r // (tp * cp * dp),
            )
            for r in range(len(places))
        ]  # fmt: skip

    @property
    def pointer(self) -> Handle:
        """The library's plan of this text, read at the first use.  Raises as Cluster does."""
        if self._handle is None:
            self._handle, notes = create("plan", "linkwise_plan_parse", text(self._words), None)
            warn(notes)
        return self._handle

    @classmethod
    def found(cls, handle: Handle) -> Plan:
        """Of a plan that the library made."""
        plan = cls(text_of("linkwise_plan_to_json", handle))
        plan._handle = handle
        return plan

    def to_json(self) -> str:
        """The plan file's text."""
        return self._words

    def __reduce__(self) -> Tuple[type, Tuple[str]]:
        """To other processes by its text."""
        return Plan, (self._words,)

    def write(self, path: str) -> None:
        """Write the plan file, whole or not at all.  Raises FileError."""
        call("linkwise_plan_write", self.pointer, text(path))

    @property
    def step_s(self) -> float:
        """Seconds of one optimizer step."""
        return float(self.document["estimate"]["step_s"])

    @property
    def lower_bound_s(self) -> float:
        """No plan of the searched space takes less."""
        return float(self.document["estimate"]["lower_bound_s"])

    @property
    def peak_bytes(self) -> float:
        """Of the fullest GPU."""
        return float(self.document["memory"]["peak_bytes"])

    def __repr__(self) -> str:
        usual = {"etp": self.degrees["tp"]}
        said = {axis: n for axis, n in self.degrees.items() if n != usual.get(axis, 1)}
        degrees = ", ".join(f"{axis} {n}" for axis, n in said.items())
        return f"<linkwise.Plan of {len(self.ranks)} ranks: {degrees}>"
