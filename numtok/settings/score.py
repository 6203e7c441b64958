"""Settings of ``numtok score``, which scores the numbers in the answers of any model."""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path

from numtok.declaration import CommandSettings, setting, settings_in
from numtok.errors import UsageError
from numtok.setting_scope import refuse
from numtok.settings import _fields

_BENCHMARK = "Benchmark"  # a section
_field = partial(setting, metavar="NAME", section="Fields")
#: Settings that apply to a benchmark.
_OF_BENCHMARKS = {"files", "truth", "rules", "benchmark", "answers", "split"}


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok score``.

    files
        Answer files, one per model. With ``benchmark``, a single answer file or report.
    truth
        File of the true values. With ``benchmark``, REF of the data.
    rules
        Rules that choose which number in an answer is scored. With ``benchmark``, one of the
        benchmark's own rules.
    """

    files: tuple[str, ...] = setting(
        help="JSONL files of answers, one per model; the others are compared with the first",
        metavar="FILE",
        argument=True,
        swept=False,
    )
    _: KW_ONLY
    truth: str | None = setting(
        None,
        "JSONL file of the true values, joined by id",
        metavar="FILE",
        shown_default="a field of each answer",
    )
    rules: tuple[str, ...] = setting(
        (),
        "Which number is the answer: strict, only-number, first-number, last-number, boxed or "
        "after:REGEX; repeatable",
        flag="rule",
        metavar="RULE",
        shown_default="strict, first-number, last-number and boxed",
    )
    numerals: str | None = _fields.numerals(shown_default="thousands")
    metrics: tuple[str, ...] = _fields.metrics(
        "Metric to print, such as exact-match or relative-error-over,limit=0.1; repeatable"
    )
    compare_by: str = setting(
        "exact-match", "Metric by which models are compared", metavar="METRIC"
    )
    require: tuple[str, ...] = _fields.require(
        'Threshold such as "exact-match>=0.7", for one --rule; exit with code 1 if a model misses '
        "it; repeatable"
    )
    on_error: str = _fields.on_error(
        "Row without an id, a true value or a partner: fail, or skip and count it"
    )
    out: Path | None = setting(  # noqa: RUF009
        None,
        "Also write the number read from each answer, and whether it is right, as JSONL",
        metavar="FILE",
        swept=False,
    )
    answer_field: str = _field("answer", "Field of the answer; resps.0.0 if nested")
    truth_field: str = _field("truth", "Field of the true value")
    truth_rule: str = _field(
        "only-number",
        "Rule that finds the true value in a longer text, such as after:####",
        metavar="RULE",
    )
    id_field: str = _field("id", "Field of the id")
    cluster_field: str = _field(
        "cluster",
        "Field of the cluster: rows that are not independent, such as answers to one question",
    )
    benchmark: str | None = setting(
        None,
        "Score as a benchmark does: nupa, of a FILE of answers to --truth DATA, or of a REPORT",
        choices=("nupa",),
        metavar="NAME",
        section=_BENCHMARK,
    )
    answers: str | None = setting(
        None,
        "FILE of answers, if the first argument is the data",
        metavar="FILE",
        section=_BENCHMARK,
    )
    split: str = setting(
        "test", "Split that the answers belong to", metavar="NAME", section=_BENCHMARK
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.benchmark is None:
            self._check_general()
        else:
            self._check_benchmark()

    def _check_general(self) -> None:
        if self.answers is not None or self.split != "test":
            option = "--answers" if self.answers is not None else "--split"
            raise UsageError(f"{option} only applies to a benchmark. Add --benchmark nupa")
        if twice := [file for file in self.files if self.files.count(file) > 1]:
            raise UsageError(f"{twice[0]} is passed twice. Pass each file of answers once")
        if self.require and len(self.rules) != 1:
            raise UsageError(
                f"--require needs one --rule (got {len(self.rules)}). Choose it, such as --rule "
                "last-number"
            )

    def _check_benchmark(self) -> None:
        if len(self.files) > 1:
            raise UsageError(
                f"--benchmark {self.benchmark} scores one model (got {len(self.files)} arguments). "
                "Score each separately"
            )
        if self.answers is not None and self.truth is not None:
            raise UsageError(
                "--answers cannot be combined with --truth. Pass the file of answers first: "
                f"`numtok score FILE --truth {self.truth}`"
            )
        others = settings_in(type(self)).keys() - _OF_BENCHMARKS
        refuse(self, others, f"--benchmark {self.benchmark}")
