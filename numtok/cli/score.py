"""``numtok score``: score the numbers in the answers of any model."""

import typer

from numtok.cli._shared import open_store
from numtok.cli.output.printing import Format
from numtok.settings.score import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Score the numbers in any model's answers.

    A rule chooses one number in each answer, which is compared with the true value as a decimal
    number. LaTeX, Markdown, commas between thousands, currency signs and units are ignored, except
    by the rule strict. A missing answer counts as wrong. Several files are compared row by row.

    Example: numtok score answers.jsonl --truth gold.jsonl --rule last-number
    """
    if settings.benchmark == "nupa":
        from numtok.cli.output.nupa import print_tables
        from numtok.stages import nupa

        print_tables(nupa.run(settings, open_store(context)), format)
        return
    from numtok.cli.output.score import print_scores
    from numtok.evaluation.comparison.requirements import check_met
    from numtok.stages.score import run

    scores = run(settings)
    print_scores(scores, format)
    check_met(scores.requirements)
