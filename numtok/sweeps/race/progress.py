"""How far a race is, for whoever watches it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple


class CandidateState(NamedTuple):
    """One candidate while it races.

    state
        ``waiting``, ``running``, ``done``, ``out`` (of an earlier round) or ``failed``, of this
        round.
    steps
        Of this round, or of the last one that it was in.
    skill
        On the validation split, after the last round that it was in; None where there is none yet.
    """

    label: str
    state: str
    steps: int
    skill: float | None


class RaceProgress(NamedTuple):
    """What was done last, a line to keep (empty where there is none); what is being done, and how
    much of it is; and the candidates, none before they are known. ``unit`` is that of their steps.
    """

    line: str
    doing: str
    done: int = 0
    total: int = 0
    standings: Sequence[CandidateState] = ()
    unit: str = "steps"


Progress = Callable[[RaceProgress], None]
