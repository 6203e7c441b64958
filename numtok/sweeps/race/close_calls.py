"""Close calls: rounds in which the last survivor and the first one eliminated are within noise."""

from collections.abc import Iterator, Sequence

from numtok.evaluation.report_files import ReportPredictions, read
from numtok.reports import REPORT
from numtok.store.store import Store
from numtok.sweeps.race.plan import Plan
from numtok.sweeps.race.rounds import RoundResult
from numtok.sweeps.race.skill import in_slots, skill_apart


def close_calls(
    rounds: Sequence[RoundResult], plan: Plan, store: Store, target: str | None
) -> Iterator[str]:
    """Yield a sentence for each round whose last survivor and first one eliminated have skills with
    a difference whose interval, of a bootstrap over the validation rows, contains 0."""
    sizes = [one.size for one in [*plan.rounds, plan.last][1:]]
    for number, (one, size) in enumerate(zip(rounds, sizes, strict=True), 1):
        skills = {label: skill for label, skill in one.skills.items() if skill is not None}
        ordered = sorted(skills, key=lambda label: -skills[label])
        if len(ordered) <= size:
            continue
        pair = ordered[size - 1 : size + 1]
        reports = [read(store.resolve(one.reports[label], {REPORT})) for label in pair]
        survivor, cut = (
            in_slots(ReportPredictions.read(each).of_target(target), plan.guesses)
            for each in reports
        )
        assert survivor.slot_median is not None
        apart = skill_apart([survivor], [cut], survivor._replace(prediction=survivor.slot_median))
        if apart.low is not None and apart.high is not None and apart.low <= 0 <= apart.high:
            yield (
                f"Round {number}: {pair[0]} survived and {pair[1]} did not, with skills "
                f"{skills[pair[0]]:.3f} and {skills[pair[1]]:.3f}; the difference is within noise "
                f"({apart.low:.3f} to {apart.high:.3f}). Longer rounds: --minutes."
            )
