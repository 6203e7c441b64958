"""The scripts under pipelines/ are valid shell, and they run."""

import csv
import io
import json
import os
import runpy
import subprocess
import sys
from dataclasses import asdict
from itertools import pairwise, product
from pathlib import Path

import pytest

from numtok.data.tasks.base import TASKS
from numtok.encoding.schemes.base import SCHEMES, ChannelScheme
from numtok.models.heads.base import HEADS
from numtok.models.presets import trunk
from numtok.numerals.policy import NumeralPolicy
from numtok.registry import name_in
from numtok.stages import fetch, gen
from numtok.sweeps.file import read_sweep
from numtok.sweeps.plan import Sweep, kind_of
from numtok.training.curriculum import Curriculum
from tests.messages import Says
from tests.shell import Shell

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "pipelines").glob("*.sh"))
FIGURES = ROOT / "pipelines/xval-figures.sh"
NUMGPT_FIGURE = ROOT / "pipelines/numgpt-figure1.sh"
GALLERY = ROOT / "pipelines/pages.sh"
NO_SWEEPS = (ROOT / "pipelines/scales.sh", FIGURES, NUMGPT_FIGURE, GALLERY)
TABLES = [path for path in SCRIPTS if path not in NO_SWEEPS]
OF_TEXTS = [path for path in TABLES if path.name.startswith("xval-table")]
OF_TABLES = [path for path in TABLES if path.name.startswith("decoding")]
NUMVALUE = ROOT / "pipelines/numvalue-table1.sh"
OF_NUMGPT = [path for path in TABLES if path.name.startswith("numgpt")]


def shell(command: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # Scripts are configured by variables, and those of the user are not meant for them.
    others = {name: of for name, of in os.environ.items() if name.startswith(("PYTHON", "HOME"))}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=others | {"PATH": path} | environment,
        capture_output=True,
        text=True,
    )


def test_a_pipeline_is_shell(tmp_path: Path) -> None:
    assert len(SCRIPTS) > 20
    assert shell("; ".join(f"bash -n {script}" for script in SCRIPTS), tmp_path).stderr == ""


@pytest.mark.parametrize("scale", ["smoke", "cpu", "gpu", "paper"])
def test_every_scale_says_all_sizes(scale: str, tmp_path: Path) -> None:
    script = f'. {ROOT}/pipelines/scales.sh; set -u; echo "$PRESET $SAMPLES $BATCH $STEPS"'
    done = shell(f"{script}; echo $SEEDS $SHARES", tmp_path, SCALE=scale)
    assert done.returncode == 0, done.stderr
    preset, *sizes = done.stdout.split()
    assert preset.partition(",")[0] in ("nano", "xval")
    assert all(int(size) >= 0 for size in sizes)


@pytest.mark.parametrize("scale", ["smoke", "cpu", "gpu", "paper"])
def test_every_scale_has_heads_and_perceptrons_that_there_are(scale: str, tmp_path: Path) -> None:
    names = "UD ND RIEMANN MDN POINTWISE PRESETS"
    script = f". {ROOT}/pipelines/scales.sh; for name in {names}; do echo ${{!name}}; done"
    done = shell(script, tmp_path, SCALE=scale)
    assert done.returncode == 0, done.stderr
    *kinds, presets = [line.split() for line in done.stdout.splitlines()]
    assert [{kind_of(spec) for spec in specs} for specs in kinds] == [
        {"decoder:ud"},
        {"decoder:nd"},
        {"riemann"},
        {"mdn"},
        {"pointwise"},
    ]
    sizes = [len(set(map(trunk, presets))), *(len(set(map(HEADS.build, one))) for one in kinds)]
    if scale == "paper":  # Appendix D
        assert sizes == [4 * 3, 3 * 3 * 3 * 2, 3 * 3 * 2, 6, 7, 1]
    else:
        assert min(sizes) > 0


def test_an_unknown_scale_is_refused(tmp_path: Path, says: Says) -> None:
    done = shell(f"{TABLES[0]}", tmp_path, SCALE="huge")
    assert done.returncode == 2
    says(done.stderr, "SCALE=huge ", "smoke, cpu, gpu, paper\n")


REPORTS = ["one@0", "two@0"]  # of every recorded sweep with --json
Runs = set[tuple[object, ...]]


def runs(sweep: Sweep) -> Runs:
    """Return the settings of each run of a sweep, and its selection."""
    found: Runs = set()
    for encodings, trainings in sweep.ways:
        stages = sweep.data, encodings, trainings, sweep.eval
        every = product(*([str(one) for _, one in stage] for stage in stages))
        found |= {(*one, sweep.select) for one in every}
    return found


def recorded(script: Path, folder: Path, **environment: str) -> list[list[str]]:
    """Return the words of each call of numtok in a script, which are recorded but not run."""
    told = {"tables": [{"comparison": {"experiments": [{"reports": REPORTS}]}}]}
    for name in ("numtok", "python"):
        recorder = folder / name
        recorder.write_text(
            '#!/bin/sh\nfor word; do echo "$word"; done >> calls; echo >> calls\n'
            'case "$*" in *--json*) '
            f"echo '{json.dumps(told)}';; sweep*) ;; *) echo field@0;; esac\n"
        )
        recorder.chmod(0o755)
    done = shell(f"PATH={folder}:$PATH {script}", folder, **environment)
    assert done.returncode == 0, done.stderr
    return [call.splitlines() for call in (folder / "calls").read_text().split("\n\n") if call]


def read(calls: list[list[str]]) -> list[Sweep]:
    """Return the sweeps among some calls, as numtok reads them."""
    return [
        read_sweep(
            Path(call[1]),
            [value for option, value in pairwise(call) if option == "--set"],
        )
        for call in calls
        if call[0] == "sweep"
    ]


def asked_for(script: Path, folder: Path, **environment: str) -> list[Sweep]:
    """Return the sweeps that a script calls."""
    calls = recorded(script, folder, **environment)
    made = {"fetch", "gen", "encode", "-"}  # a program on standard input
    assert {call[0] for call in calls} <= {"sweep", *made}
    return read(calls)


@pytest.mark.parametrize("script", TABLES, ids=lambda path: path.name)
def test_the_script_at_cpu_scale_makes_the_runs_of_the_sweep_file(
    script: Path, tmp_path: Path
) -> None:
    alone = runs(read_sweep(script.with_suffix(".toml")))
    if script in OF_TEXTS:
        counts = {
            "xval-table2.sh": 45,
            "xval-table3.sh": 180,
            "xval-table4.sh": 15,
            "xval-table5.sh": 72,
        }
        assert len(alone) == counts[script.name]
    sweeps = asked_for(script, tmp_path, SCALE="cpu", OTHERS="")
    if script.name == "xval-table4.sh":  # the file has only the first, with the user's field
        sweeps = sweeps[:1]
        alone = {tuple(str(one).replace("'uk'", "'field@0'") for one in run) for run in alone}
    if script.name == "grand-table.sh":  # the file has only equal numbers of examples
        sweeps = sweeps[:1]
    if script.name == "decoding-regression-figure11.sh":  # the file begins with two dimensions
        one = [run for run in runs(sweeps[0]) if "dimension=1'" in str(run[0])]
        assert len(one) == len(runs(sweeps[0])) / 4
        alone |= set(one)
    if script.name == "numgpt-table2.sh":  # the file has no BiGRU
        sweeps = sweeps[:1]
        data = "('numeracy600k',)", "('field@0',)"
        alone = {tuple(str(one).replace(*data) for one in run) for run in alone}
    assert {tuple(map(str, run)) for run in set().union(*map(runs, sweeps))} == {
        tuple(map(str, run)) for run in alone
    }


@pytest.mark.parametrize("scale", ["smoke", "cpu", "gpu", "paper"])
@pytest.mark.parametrize("script", OF_TEXTS, ids=lambda path: path.name)
def test_models_of_xval_learn_as_in_the_paper_at_every_scale(
    script: Path, scale: str, tmp_path: Path
) -> None:
    """Tables 2 and 3 mask the answer, Tables 4 and 5 any token; OBJECTIVE overrides both."""

    def objectives(**environment: str) -> set[str | None]:
        sweeps = asked_for(script, tmp_path, SCALE=scale, ERA5="a place", **environment)
        configs = [one for sweep in sweeps for one in sweep.trainings]
        return {one.objective for one in configs}

    masks_any = script.name in ("xval-table4.sh", "xval-table5.sh")
    assert objectives() == {"mlm:tokens" if masks_any else "mlm:targets"}
    (tmp_path / "calls").unlink()
    assert objectives(OBJECTIVE="mlm:targets") == {"mlm:targets"}


def test_the_paper_of_numgpt_reads_commas_and_percent_and_writes_bpe() -> None:
    """Its parser reads 2,300 and 23% as one number each, and its GPT uses BPE pieces."""
    sweeps = {path.stem: read_sweep(path) for path in (ROOT / "pipelines").glob("numgpt-*.toml")}
    encodings = {
        name: [one for told, _ in sweep.ways for _, one in told if one is not None]
        for name, sweep in sweeps.items()
    }
    for table in ("numgpt-table1", "numgpt-table2", "numgpt-table3"):
        [bpe] = [one for one in encodings[table] if one.scheme == "bpe"]
        assert bpe.text_tokenizer == "bpe:8000"
    for one in encodings["numgpt-table2"]:  # rows of the other tables have neither
        assert one.numerals is not None
        policy = NumeralPolicy.parse(one.numerals)
        assert policy.thousands and policy.percent


def test_all_encodings_of_one_token_learn_every_task_of_bittokens() -> None:
    """Each has three seeds. The task whose answer is a letter has its own file."""
    tasks: set[str] = set()
    for name in ("table", "interval"):
        sweep = read_sweep(ROOT / f"pipelines/bittokens-{name}.toml")
        tasks |= {made.task for _, made in sweep.data if isinstance(made, gen.Config)}
        specs = {one.scheme for told, _ in sweep.ways for _, one in told if one is not None}
        schemes = {name_in(spec) for spec in specs if spec is not None}
        alone = {one for one in SCHEMES if issubclass(SCHEMES[one], ChannelScheme)} - {"dice"}
        assert schemes >= {*alone, "digits"} and sweep.size % 3 == 0
    assert len(tasks) == 9


@pytest.mark.parametrize("scale", ["smoke", "cpu", "gpu"])
def test_table_4_is_of_one_field_at_three_budgets(scale: str, tmp_path: Path) -> None:
    calls = recorded(ROOT / "pipelines/xval-table4.sh", tmp_path, SCALE=scale, ERA5="a place")
    area, period = {"gpu": ("60,-10,40,30", "2010-01-01..2019-12-31")}.get(
        scale, ("58,-10,50,2", "2019-03-01..2019-03-31")
    )
    assert calls[0] == [
        *("fetch", "era5", "--from", "a place", "--area", area, "--period", period),
        *(["--every", "6h"] if scale == "gpu" else []),
    ]
    assert [call[0] for call in calls[1:]] == ["sweep"] * 3
    sweeps = read(calls)
    scales: dict[str, dict[str, float]] = {
        "smoke": {"steps": 20, "tokens": 150_000, "minutes": 0.05},
        "cpu": {"steps": 4000, "tokens": 11_800_000, "minutes": 6},
        "gpu": {"steps": 50_000, "tokens": 50_000 * 16 * 6000, "minutes": 1500},
    }
    budgets, alike = scales[scale], []
    for sweep, (budget, amount), column in zip(
        sweeps, budgets.items(), ("equal samples", "equal tokens", "equal time"), strict=True
    ):
        assert (sweep.compare.against, sweep.compare.column) == ("xval/table4", f"{column}: loss")
        settings = [asdict(config) for _, config in sweep.train if config is not None]
        for one in settings:
            given = {name: one.pop(name) for name in budgets}
            assert {name: value for name, value in given.items() if value} == {budget: amount}
        alike.append((sweep.data, sweep.encode, settings, sweep.eval))
        ((_, data),) = sweep.data
        assert isinstance(data, gen.Config) and data.from_ == "field@0"
    assert alike[0] == alike[1] == alike[2]


def test_what_is_set_from_outside_reaches_the_runs(tmp_path: Path) -> None:
    small = {"SCALE": "smoke", "SCHEMES": "xval", "OPERANDS": "3", "SEEDS": "5 6", "SHARES": "4 2"}
    sweeps = asked_for(ROOT / "pipelines/xval-table3.sh", tmp_path, **small, JOBS="3")
    assert (tmp_path / "calls").read_text().count("--jobs\n3\n") == len(sweeps) == 3
    assert [one.steps for sweep in sweeps for _, one in sweep.train[:1]] == [5, 10, 20]
    assert [one.seed for _, one in sweeps[0].train] == [5, 6]
    assert [one and one.scheme for _, one in sweeps[0].encode] == ["xval"]
    ((_, data),) = sweeps[0].data
    assert isinstance(data, gen.Config)
    assert (data.task, data.samples) == ("arithmetic,operands=3,low=1.00,high=9.99", 2000)
    assert [sweep.compare.by for sweep in sweeps] == [None, None, "operator"]


@pytest.mark.parametrize("script", OF_TABLES, ids=lambda path: path.name)
@pytest.mark.parametrize("scale", ["smoke", "gpu", "paper"])
def test_the_script_of_tables_is_read_at_every_scale(
    script: Path, scale: str, tmp_path: Path
) -> None:
    few = {"RUNS": "0", "PRESETS": "mlp", "FUNCTIONS": "1", "DIMENSIONS": "5", "SETS": "yacht"}
    folder = tmp_path / "a copy"
    folder.mkdir()
    sweeps = asked_for(script, tmp_path, SCALE=scale, UCI=str(folder), **few)
    assert all(sweep.encode == (({}, None),) and sweep.size for sweep in sweeps)
    for _, source in (point for sweep in sweeps for point in sweep.data):
        if isinstance(source, fetch.Config) and source.source == "uci":
            assert source.options["from_"] == str(folder)


DRAWN = {
    "xval-table4.sh": [
        *["truth --out figures/xval-figure3.png", "frequencies --part mantissa --out "],
        *["frequencies --part exponent --out ", "frequencies --part number --out "],
    ],
    "decoding-regression-figure4.sh": [
        "curve --scale signed-log --out figures/decoding-regression-figure4.png"
    ],
    "decoding-regression-figure11.sh": [
        "lines --x data.dimension --metric kendall-tau --out figures/decoding-regression-figure11"
    ],
    "numgpt-table1.sh": ["lines --x budget_steps --metric accuracy --out figures/numgpt-table1-"],
    "numgpt-figure3.sh": [
        "lines --x embedder.sigma --metric accuracy --out figures/numgpt-figure3"
    ],
}


@pytest.mark.parametrize("name", DRAWN)
def test_figures_are_drawn_of_the_reports_of_the_sweep(name: str, tmp_path: Path) -> None:
    small = {"SCALE": "smoke", "OUT": "figures", "ERA5": "a place", "JUDGED": "comparison"}
    calls = recorded(ROOT / "pipelines" / name, tmp_path, **small, FUNCTIONS="1")
    figures = [call for call in calls if call[0] == "figure"]
    for call, told in zip(figures, DRAWN[name], strict=True):
        assert call[2:4] == REPORTS
        assert " ".join([call[1], *call[4:]]).startswith(told)
    if name == "xval-table4.sh":
        assert ["diagnose", *REPORTS] in calls
        [[script, *refs]] = [call for call in calls if call[0].endswith(".py")]
        assert (Path(script).name, refs) == ("xval-figure4.py", REPORTS)


def test_figure_11_begins_with_one_dimension_where_the_function_has_it(tmp_path: Path) -> None:
    script = ROOT / "pipelines/decoding-regression-figure11.sh"
    sweeps = asked_for(script, tmp_path, SCALE="gpu", FUNCTIONS="8 10 11 12")
    least = []
    for sweep in sweeps:
        tasks = [one.task for _, one in sweep.data if isinstance(one, gen.Config)]
        least.append(min(TASKS.build(task).dimension for task in tasks))  # type: ignore[attr-defined]
    assert least == [2, 1, 1, 2]


def test_the_tokens_of_table_1_of_xval_are_those_of_the_paper(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = str(ROOT / "pipelines/xval-table1.py")
    monkeypatch.setattr(sys, "argv", [script, "--format", "csv"])
    runpy.run_path(script, run_name="__main__")
    rows = [row[2:] for row in csv.reader(io.StringIO(capsys.readouterr().out))][1:]
    assert [row[0:3:2] for row in rows] == [row[1:4:2] for row in rows]
    assert [row[0] for row in rows] == ["5", "3", "2", "1", "1"]


@pytest.mark.parametrize("script", OF_NUMGPT, ids=lambda path: path.name)
@pytest.mark.parametrize("scale", ["smoke", "gpu", "paper"])
def test_the_script_of_numgpt_is_read_at_every_scale(
    script: Path, scale: str, tmp_path: Path
) -> None:
    sweeps = asked_for(script, tmp_path, SCALE=scale, NUMERACY="a file")
    epochs = 5 if script.name == "numgpt-table2.sh" else 50
    for sweep in sweeps:
        seeds = {one.seed for one in sweep.trainings}
        assert len(seeds) == (2 if scale == "smoke" else 5)
        for one in sweep.trainings:
            assert one.batch == 96 and one.steps is not None
            if scale == "smoke":
                continue
            is_gru = script.name == "numgpt-table2.sh" and sweep is sweeps[-1]
            shape = ("bigru", 5e-3) if is_gru else ("gpt2", 6.25e-5)
            assert (one.preset, one.learning_rate) == shape
            rows = one.steps * 96 / epochs
            assert any(rows == pytest.approx(n, rel=2e-3) for n in (16000, 32000, 5512, 500000))


def test_models_of_a_corpus_are_told_to_begin_with_it(tmp_path: Path) -> None:
    """The model of the corpus is trained once per scheme and fine-tuned with each seed."""
    given = {"SCALE": "smoke", "JUDGED": "comparison", "CORPUS": "a.jsonl b.jsonl"}
    calls = recorded(ROOT / "pipelines/numgpt-table1.sh", tmp_path, **given)
    assert [call[0] for call in calls] == [
        *("sweep", "gen"),
        *("encode", "train", "encode", "train", "eval", "train", "eval") * 3,
        "compare",
    ]
    read = "--numbers", "thousands,percent", "a.jsonl", "b.jsonl"
    assert calls[2] == ["encode", "--scheme", "bpe", "--text-tokenizer", "bpe:8000", *read]
    assert calls[9] == ["encode", "--scheme", "digits", *read]
    assert calls[16] == ["encode", "--scheme", "numgpt", *read]
    assert [call[call.index("--objective") + 1] for call in calls if call[0] == "train"] == [
        *("ar", "classify", "classify") * 3
    ]
    assert calls[-1][-2:] == ["--against", "numgpt/table1"]


@pytest.mark.parametrize("scale", ["smoke", "cpu", "gpu", "paper"])
def test_nupa_is_asked_of_five_ways_and_of_other_schemes(scale: str, tmp_path: Path) -> None:
    sweeps = asked_for(NUMVALUE, tmp_path, SCALE=scale)
    tables = ["numvalue/table6", "numvalue/table2", "numvalue/table1", "numvalue/table6"]
    assert [sweep.compare.against for sweep in sweeps] == tables
    assert runs(sweeps[0]) == runs(sweeps[1]) == runs(sweeps[2]) < runs(sweeps[3])
    five = ["digits", "numerologic", "numerologic:answer", "numvalue", "numvalue"]
    for sweep, schemes in zip(
        sweeps, [five] * 3 + [[*five, "p1000", "xval", "numgpt"]], strict=True
    ):
        ways = [(one, made) for told, made in sweep.ways for _, one in told]
        assert sorted(str(one.scheme) for one, _ in ways if one) == sorted(schemes)
        ((_, data),) = sweep.data
        assert isinstance(data, gen.Config) and data.task.startswith("nupa,")
        for one in (one for _, made in sweep.ways for _, one in made):
            assert (one.curriculum is not None) == (scale == "paper")
    if scale == "paper":  # Table 5
        one = sweeps[0].trainings[0]
        assert (one.batch, one.learning_rate, one.final_rate, one.warmup) == (256, 5e-5, 6e-6, 0.3)
        assert one.curriculum is not None and Curriculum.read(Path(one.curriculum)).restart


@pytest.mark.parametrize("scale", ["smoke", "cpu", "gpu", "paper"])
def test_there_are_as_many_expressions_as_a_scale_asks_for(
    scale: str, tmp_path: Path, numtok: Shell
) -> None:
    samples = shell(f". {ROOT}/pipelines/scales.sh; echo $SAMPLES", tmp_path, SCALE=scale).stdout
    words = ["--rows", samples.strip(), "--split", "validation=0.01,test=0.01", "--dry-run"]
    for task in ("arithmetic,operands=2,low=1.00,high=9.99", "arithmetic,kind=product,digits=3"):
        ran = numtok("gen", task, *words)
        assert ran.code == 0, ran.err
