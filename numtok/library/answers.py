"""``numtok.read_answer`` and ``numtok.score_answers`` for generated answers in memory."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isnan
from typing import Any

from numtok.cli.output.score import print_scores
from numtok.errors import DataError, UsageError
from numtok.evaluation.answer_scores.answer_files import Answers, clusters_of
from numtok.evaluation.answer_scores.scores import Scoring
from numtok.library.arguments import as_arguments, check_type, settings_of, typed
from numtok.library.view import Shown
from numtok.names import counted
from numtok.numerals.answers.read import POLICY, read_answers
from numtok.numerals.answers.rules import AnswerRule
from numtok.numerals.literals import exact_value
from numtok.numerals.policy import NumeralPolicy
from numtok.settings.score import Config

Answer = str | float | Decimal | None
_OF_FILES = {"files", "truth", "answer_field", "truth_field", "id_field", "cluster_field"}
_OF_FILES |= {"out", "benchmark", "answers", "split"}


@as_arguments(Config)
@typed
def read_answer(
    text: str | None, rule: str = "last-number", *, numbers: str | None = None
) -> Decimal | None:
    r"""Read the number that a generated text gives as its answer.

    LaTeX, Markdown, commas between thousands, currency signs and units are ignored, except by the
    rule ``strict``. The results for ``5``, ``5.00`` and ``+5`` are equal.

    Parameters
    ----------
    text : str or None
        The generated text; None for a missing answer.
    rule : str, default 'last-number'
        Which number is the answer: 'strict' (the whole text), 'only-number', 'first-number',
        'last-number', 'boxed' or 'after:REGEX'.
    numbers : str, optional
        Numeral policy. Default: 'thousands'.

    Returns
    -------
    decimal.Decimal or None
        The exact value, or None if the rule finds no number.

    Examples
    --------
    >>> numtok.read_answer(r"So the sum is $\boxed{1{,}234.50}$.", "boxed")
    Decimal('1234.50')
    """
    policy = POLICY if numbers is None else NumeralPolicy.parse(numbers)
    [literal] = read_answers([text], AnswerRule.parse(rule), policy)
    return None if literal is None else exact_value(literal)


@as_arguments(Config)
def score_answers(
    answers: Sequence[Answer] | Mapping[str, Sequence[Answer]],
    truth: Sequence[str | float | Decimal],
    *,
    clusters: Sequence[Any] | None = None,
    **settings: Any,
) -> Shown:
    """Score generated answers in memory, as :func:`numtok.score` does for files.

    Parameters
    ----------
    answers : sequence of str, number or None, or dict of such sequences keyed by model
        Answers to n questions; None and NaN are missing. With several models, each further model
        is compared with the first one.
    truth : sequence of str, int, float or Decimal
        True value of each question.
    clusters : sequence, optional
        Cluster of each question. Questions in the same cluster are not independent.
    **settings
        Settings of :func:`numtok.score` that do not concern files: ``rules``, ``metrics``,
        ``numbers``, ``compare_by``, ``require``, ``truth_rule``, ``on_error``.

    Returns
    -------
    Shown
        Object that prints the tables of ``numtok score``. Its ``result`` contains the scores.

    Examples
    --------
    >>> scored = numtok.score_answers(["It is **5**.", "7"], [5, 8], rules="last-number")
    >>> scored.result.models[0].rules[0].metrics["exact-match"].value
    0.5
    """
    for name in sorted(settings.keys() & _OF_FILES):
        raise UsageError(f"{name} only applies to files. Use numtok.score")
    models = answers if isinstance(answers, Mapping) else {"answers": answers}
    for name, texts in models.items():
        if len(texts) != len(truth):
            raise DataError(
                f"{name} has {counted(len(texts), 'answer')} to "
                f"{counted(len(truth), 'true value')}. Pass one answer per true value; None if it "
                "is missing"
            )
    if clusters is not None and len(clusters) != len(truth):
        raise DataError(
            f"clusters has {counted(len(clusters), 'element')} for "
            f"{counted(len(truth), 'true value')}. Pass one each"
        )
    if not len(truth) or not models:
        raise DataError("answers are empty. Pass at least one")
    scoring = Scoring.of(settings_of(Config, (list(models),), settings))
    ids = list(map(str, range(len(truth))))
    own = [] if clusters is None else [None if one is None else str(one) for one in clusters]
    scored, numbers = scoring.read(
        Answers(
            ids=ids,
            truths=[_text(value, scoring.comma) for value in truth],
            locations=[f"truth[{index}]" for index in range(len(truth))],
            answers={
                name: [_answer(text, scoring.comma) for text in texts]
                for name, texts in models.items()
            },
            clusters=clusters_of(ids, own),
        )
    )
    return Shown.of(scoring.score(scored, numbers), print_scores)


def _answer(value: Answer, comma: bool) -> str | None:
    if not isinstance(value, Decimal):
        check_type("an answer", value, str | float | None)
    if value is None or isinstance(value, str):
        return value
    return None if isnan(value) else _text(value, comma)


def _text(value: str | float | Decimal, comma: bool) -> str:
    text = str(value)
    return text.replace(".", ",") if comma and not isinstance(value, str) else text
