"""Sweep files: axes and points, changes from the command line, and errors."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.data.sources.base import SOURCES
from numtok.errors import UsageError
from numtok.stages import eval, fetch, gen, table, train
from numtok.sweeps.file import read_sweep
from numtok.sweeps.plan import Sweep, label_of
from tests.cases import case
from tests.messages import Says

ROOT = Path(__file__).resolve().parents[2]


def written(folder: Path, text: str) -> Path:
    path = folder / "sweep.toml"
    path.write_text(text)
    return path


def parsed(folder: Path, text: str, changes: Sequence[str] = ()) -> Sweep:
    return read_sweep(written(folder, text), changes)


ENCODE = 'data = "a.jsonl"\n[encode]\nscheme = "p10"\n'


def test_a_list_is_an_axis_and_every_combination_a_point(tmp_path: Path) -> None:
    sweep = parsed(
        tmp_path,
        '[gen]\ntask = "arithmetic"\noperands = [2, 3]\nlow = 1.00\nrows = 50\n'
        '[encode]\nscheme = ["p10", "xval"]\n'
        "[train]\nsteps = 3\nlr = [1e-3, 2e-3]\nseed = [0, 1, 2]\n",
    )
    assert [point for point, _ in sweep.data] == [{"operands": "2"}, {"operands": "3"}]
    assert [point["scheme"] for point, _ in sweep.encode] == ["p10", "xval"]
    assert [(one.learning_rate, one.seed) for _, one in sweep.train] == list(
        product((1e-3, 2e-3), (0, 1, 2))
    )
    assert [point for point, _ in sweep.eval] == [{}]
    assert sweep.size == 24
    first = sweep.data[0][1]
    # Numbers keep their decimals: 1.00 gives the task two decimal places.
    assert isinstance(first, gen.Config) and first.task == "arithmetic,operands=2,low=1.00"


def test_what_a_task_reads_is_named_in_the_file(tmp_path: Path) -> None:
    text = '[gen]\ntask = "temperature"\nfrom = ["uk", "alps"]\nstations = "8..12"\n[encode]\n'
    sweep = parsed(tmp_path, text + 'scheme = "p10"\n[train]\nsteps = 3\n')
    assert [point for point, _ in sweep.data] == [{"from": "uk"}, {"from": "alps"}]
    first = sweep.data[0][1]
    assert isinstance(first, gen.Config)
    assert (first.task, first.from_) == ("temperature,stations=8..12", "uk")


def test_ways_of_their_own_are_combined_with_nothing_else(tmp_path: Path) -> None:
    sweep = parsed(
        tmp_path,
        'data = ["a", "b"]\n[encode]\nscheme = ["p10", "xval"]\n'
        '[train]\nsteps = 3\nseed = [0, 1]\n[[also]]\nencode.scheme = "xval"\n'
        'train.head = ["mdn:2", "mdn:5"]\n[[also]]\nencode.scheme = "fp15"\ntrain.lr = 3e-3\n',
    )
    assert sweep.size == 2 * (2 * 2 + 2 * 2 + 2)
    (encodings, trainings), (_, fast) = sweep.also
    assert [(point, one and one.scheme) for point, one in encodings] == [
        ({"scheme": "xval"}, "xval")
    ]
    assert [point for point, _ in trainings] == [
        {"seed": seed, "head": head} for seed in "01" for head in ("mdn:2", "mdn:5")
    ]
    assert [(one.steps, one.learning_rate) for _, one in fast] == [
        (3, 3e-3),
        (3, 3e-3),
    ]


def test_an_axis_of_two_stages_is_told_by_its_stage(tmp_path: Path) -> None:
    sweep = parsed(
        tmp_path,
        '[gen]\ntask = "arithmetic"\nseed = [1, 2]\n[encode]\nscheme = "p10"\n'
        "[train]\nseed = [3, 4]\n",
    )
    assert list(sweep.data[0][0]) == ["gen.seed"]
    assert sweep.seeds == ["train.seed"]


def test_inputs_that_belong_together_are_a_list_within_the_list(tmp_path: Path) -> None:
    sweep = parsed(
        tmp_path,
        'data = [["train=a.jsonl", "test=b.jsonl"], "c.jsonl"]\n[encode]\nscheme = "p10"\n',
    )
    assert [inputs for _, inputs in sweep.data] == [
        ("train=a.jsonl", "test=b.jsonl"),
        ("c.jsonl",),
    ]
    assert [label_of(point) for point, _ in sweep.data] == [
        "data=train=a.jsonl test=b.jsonl",
        "data=c.jsonl",
    ]


def test_several_metrics_are_those_of_one_evaluation(tmp_path: Path) -> None:
    sweep = parsed(
        tmp_path,
        f'{ENCODE}[eval]\nmetric = ["mse", "mae"]\nfill = ["parallel", "left-to-right"]\n'
        '[compare]\nmetric = "mse"\n',
    )
    assert [one.metrics for _, one in sweep.eval] == [("mse", "mae")] * 2
    assert sweep.compare.metrics == ("mse",)


def test_the_examples_of_the_guide_are_sweeps(tmp_path: Path) -> None:
    guide = (ROOT / "docs/how-to/sweep.md").read_text("utf-8")
    example = guide.partition("```toml\n")[2].partition("```")[0]
    sweep = read_sweep(written(tmp_path, example), ["train.steps=[250, 500]", "select.reach=0.05"])
    assert sweep.size == 2 * 2 * 3 * 3
    of_tables = guide.partition("is for tables.")[2].partition("```toml\n")[2].partition("```")[0]
    assert parsed(tmp_path, of_tables).size == 2 * 4 * 2
    assert sweep.select is not None
    assert (sweep.select.over, sweep.select.reach) == (("lr",), 0.05)


# --- tables ------------------------------------------------------------------------------------


def test_budgets_are_climbed_beside_an_option_of_the_same_name(tmp_path: Path) -> None:
    text = (
        '[gen]\ntask = "orbits"\nsteps = ["0.3/0.4", "public"]\n[encode]\nscheme = "xval"\n'
        '[train]\nsteps = [10, 20]\n[select]\nmetric = "mse"\nreach = 0.1\n'
    )
    sweep = parsed(tmp_path, text)
    assert sweep.climbed == ["train.steps"]
    assert all(sweep.climbed[0] in point for point, _ in sweep.train)


def test_a_file_without_encode_is_of_tables(tmp_path: Path) -> None:
    sweep = parsed(
        tmp_path,
        '[gen]\ntask = "curves"\ncurve = ["sine", "kink"]\nrows = 50\n'
        '[train]\nhead = ["riemann:8", "decoder:ud,base=4"]\nfold = 0\nrows = 20\n'
        'normalize = "unit"\nlr = [1e-4, 5e-4]\n'
        '[eval]\nnum-samples = [1, 8]\npoint = "mean"\ntop-k = 3\nmetric = ["mse", "mae"]\n',
    )
    assert [point for point, _ in sweep.encode] == [{}]
    assert sweep.size == 2 * 4 * 2
    assert sweep.train[3][1] == train.Config(
        "", head="decoder:ud,base=4", normalize="unit", fold=0, rows=20, learning_rate=5e-4
    )
    assert sweep.eval[1] == (
        {"num-samples": "8"},
        eval.Config("", point="mean", draws=8, top_k=3, metrics=("mse", "mae")),
    )
    assert (sweep.timed, sweep.budget, sweep.seeds) == (False, None, [])


def test_tables_are_refs_or_files_with_a_target(tmp_path: Path) -> None:
    text = 'data = ["houses@1234", "a.csv"]\n[table]\ntarget = "y"\n'
    sweep = read_sweep(
        written(tmp_path, text + 'drop = ["a", "b"]\nsplit = ["test=0.2", "test=0.5"]\n')
    )
    assert sweep.data == (
        ({"data": "houses@1234"}, ("houses@1234",)),
        *(
            (
                {"data": "a.csv", "split": share},
                table.Config("a.csv", target="y", split=share, drop=("a", "b")),
            )
            for share in ("test=0.2", "test=0.5")
        ),
    )


def test_public_sets_are_an_axis(tmp_path: Path) -> None:
    sweep = parsed(tmp_path, '[fetch]\nsource = "uci"\nset = ["yacht", "wine"]\n')
    assert [point for point, _ in sweep.data] == [{"set": "yacht"}, {"set": "wine"}]
    assert sweep.data[1][1] == fetch.Config("uci", options={"set": "wine"})
    sweep = parsed(tmp_path, '[fetch]\nsource = "openml"\ntask = [3, 5]\n')
    assert [point for point, _ in sweep.data] == [{"task": "3"}, {"task": "5"}]
    sweep = parsed(tmp_path, '[fetch]\nsource = "openml"\nsuite = 353\n')
    assert sweep.data == (({}, fetch.Config("openml", options={"suite": "353"})),)


def test_a_budget_is_steps_tokens_or_minutes(tmp_path: Path) -> None:
    """Without a budget, each training takes five minutes."""
    for budget, timed in (
        ("steps = [2, 3]", False),
        ("tokens = 9", False),
        ("minutes = 0.5", True),
        ("", True),
    ):
        sweep = parsed(tmp_path, f"{ENCODE}[train]\n{budget}\n")
        assert sweep.timed is timed, budget
        assert sweep.budget == ("steps" if "[" in budget else None)


# --- changes -----------------------------------------------------------------------------------


def changed(folder: Path, *changes: str) -> Sweep:
    return parsed(folder, f"{ENCODE}[train]\nsteps = 3\n", changes=changes)


def test_changes_take_the_place_of_what_the_file_says(tmp_path: Path) -> None:
    sweep = changed(
        tmp_path,
        "train.steps=[4, 5]",
        'encode.scheme = ["xval", "p1000"]',
        "data=b.jsonl",
        "train.preset=nano,layers=1",
        "eval.limit=7",
        "train.lr=1e-3",
    )
    assert [one.steps for _, one in sweep.train] == [4, 5]
    assert [one and one.scheme for _, one in sweep.encode] == ["xval", "p1000"]
    assert sweep.data == (({}, ("b.jsonl",)),)
    assert {one.preset for _, one in sweep.train} == {"nano,layers=1"}
    assert [one.rows for _, one in sweep.eval] == [7]
    assert {one.learning_rate for _, one in sweep.train} == {0.001}


@given(
    st.lists(st.integers(1, 10**6), min_size=1, unique=True),
    st.lists(st.floats(1e-6, 0.5), min_size=1, unique=True),
)
def test_a_change_says_what_a_line_of_the_file_says(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], rates: list[float]
) -> None:
    folder = tmp_path_factory.mktemp("sweep")
    whole = written(folder, f"{ENCODE}[train]\nsteps = {steps}\nlr = {rates}\n")
    assert read_sweep(whole) == changed(folder, f"train.steps={steps}", f"train.lr={rates}")


def test_what_is_no_value_of_a_file_is_a_word(tmp_path: Path) -> None:
    for word in ("1..4", "0.1..1", "nano,layers=1", "inf,2", "a b", "-3..", "true.jsonl"):
        assert changed(tmp_path, f"data= {word} ").data == (({}, (word,)),)


def test_records_have_a_target_and_names_in_one_word(tmp_path: Path) -> None:
    changes = "data=a.csv", "encode.target=price", "encode.drop=id,town"
    (_, encoding), *_ = changed(tmp_path, *changes).encode
    assert encoding is not None
    assert (encoding.target, encoding.drop) == (("price",), ("id", "town"))


def test_a_budget_takes_the_place_of_another(tmp_path: Path) -> None:
    whole = written(tmp_path, f"{ENCODE}[train]\nsteps = 5\n")
    (((_, found), *_),) = [read_sweep(whole, ["train.minutes=2"]).train]
    assert (found.steps, found.minutes) == (None, 2)


def test_a_change_that_is_not_understood_is_told(tmp_path: Path, says: Says) -> None:
    kept = "train.steps", "=3", "train.steps=", "train.steps=[p10, 3", "train.seed=[a, b]"
    for change in (*kept, "data.file=3", "train.seed=1\nlr=2"):  # data is not a table
        with case(change), says.raises(UsageError, "--set must be TABLE.KEY=VALUE", repr(change)):
            changed(tmp_path, change)


# --- errors ------------------------------------------------------------------------------------

TABLES = 'data = "houses"\n'
RATES = f"{ENCODE}[train]\nlr = [1e-3, 2e-3]\nseed = [0, 1]\n"


#: Contents of an invalid file, and parts of the error message. FILE is replaced by the path.
REFUSED: tuple[tuple[str, *tuple[str, ...]], ...] = (
    ("data = ", "(at end of document)"),
    ("[encod]\n", "'encod'. Did you mean 'encode'?"),
    (
        f"{ENCODE}[also]\ntrain.seed = 3\n",
        "also must be a list",
        "{'train': {'seed': 3}}",
        "[[also]]",
    ),
    (f"{ENCODE}[[also]]\neval.limit = 3\n", "[[also]] of FILE 'eval'. Known: encode, train"),
    (f"{TABLES}[[also]]\nencode.scheme = 3\n", "[[also]] of FILE 'encode'. Known: train"),
    (f"{ENCODE}[[also]]\ntrain.step = 3\n", "[train] of FILE 'step'. Did you mean 'steps'?"),
    ('encode = "p10"\n', "encode must be a table (got 'p10')", "[encode]"),
    ('[encode]\nscheme = "p10"\n', "data = INPUT", "[gen]", "[fetch]"),
    (f"{ENCODE}[gen]\n", "data = INPUT", "[gen]", "[fetch]"),
    ('data = [3]\n[encode]\nscheme = "p10"\n', "data must be an input, a list", "got 3"),
    ('data = []\n[encode]\nscheme = "p10"\n', "data must be a list", "(got [])"),
    ('data = ["a", "a"]\n[encode]\nscheme = "p10"\n', "data must be a list", "(got ['a', 'a'])"),
    ("[gen]\nrows = 3\n", "[gen] needs task"),
    (
        '[gen]\ntask = "arithmetic"\noperand = 2\n[encode]\nscheme = "p10"\n',
        "[gen] ",
        "'arithmetic' 'operand'. Did you mean 'operands'?",
    ),
    ('data = "a"\n[encode]\n', "[encode] ", "either --scheme or --reuse-encoding"),
    (
        'data = "a"\n[encode]\nscheme = ["p10", "p100"]\n',
        "[encode] ",
        "'p100'. Did you mean 'p1000'?",
    ),
    (f"{ENCODE}[train]\nstep = 3\n", "[train] of FILE 'step'. Did you mean 'steps'?"),
    (f'{ENCODE}[train]\nname = "mine"\n', "[train] of FILE 'name'. Known: accumulate, "),
    (f'{ENCODE}[train]\nsteps = "many"\n', "[train] steps must be an integer", "'many'"),
    (f'{ENCODE}[train]\nlr = ["fast", 1e-3]\n', "[train] lr must be a number", "'fast'"),
    (f"{ENCODE}[train]\nlr = 3\n", "[train] lr must be above 0 and below 1 (got 3.0)"),
    (f"{ENCODE}[train]\nsteps = 3\ntokens = 9\n", "[train] --steps and --tokens", "Choose one"),
    (
        f'{ENCODE}[train]\nhead = ["token", "scaler"]\n',
        "[train] ",
        "head 'scaler'. Did you mean 'scalar'?",
    ),
    (f'{ENCODE}[train]\npreset = "huge"\n', "[train] ", "preset 'huge'. Known: "),
    (f"{ENCODE}[train]\nseed = []\n", "[train] seed must be a list", "(got [])"),
    (f"{ENCODE}[train]\nseed = [1, 1]\n", "[train] seed must be a list", "(got [1, 1])"),
    (
        f'{ENCODE}[eval]\nmetric = ["mse", "msee"]\n',
        "[eval] ",
        "metric 'msee'. Did you mean 'mse'?",
    ),
    (f'{ENCODE}[compare]\nby = ["operator"]\n', "[compare] by must be a string", "['operator']"),
    (
        f'{ENCODE}[compare]\nagainst = "xval/table9"\n',
        "[compare] ",
        "table 'xval/table9'. Did you mean 'xval/table",
    ),
    (
        f'{ENCODE}[compare]\nagainst = "xval/table3"\ncolumn = "nine"\n',
        "[compare] ",
        "column 'nine'",
    ),
    ('[gen]\ntask = "arithmetic"\n', "[gen] task = 'arithmetic' makes texts", "Add [encode]"),
    (
        '[gen]\ntask = "curves"\n[encode]\nscheme = "p10"\n',
        "[gen] task = 'curves' makes tables",
        "Remove [encode]",
    ),
    (f'{ENCODE}[table]\ntarget = "y"\n', "[table] makes tables", "Remove [encode]"),
    ('[gen]\ntask = "curves"\n[table]\ntarget = "y"\n', "[table] ", "data = FILE"),
    ('data = "a.csv"\n', "a.csv needs", "[table] with target"),
    ('data = [["a", "b"]]\n', "data must be a REF", "['a', 'b']"),
    ("[fetch]\n", "[fetch] needs source, one of ", ", ".join(SOURCES)),
    ('[fetch]\nsource = "era5"\n', "[fetch] era5 provides a field"),
    ('[fetch]\nsource = "ucl"\n', "[fetch] ", "'ucl'. Did you mean 'uci'?"),
    ('[fetch]\nsource = "uci"\n', "[fetch] uci needs set"),
    ('[fetch]\nsource = "uci"\nset = "yaht"\n', "[fetch] ", "set 'yaht'. Did you mean 'yacht'?"),
    (f"{TABLES}[train]\nsteps = 3\n", "[train] of FILE 'steps'. Did you mean 'epochs'?"),
    (f'{TABLES}[train]\npreset = "nano"\n', "[train] preset 'nano' is for texts", "mlp"),
    (f'{TABLES}[eval]\nfill = "parallel"\n', "[eval] of FILE 'fill'. Known: baselines, device, "),
    (
        f'{TABLES}[eval]\ntop-k = "all"\nnum-samples = 3\n',
        "[eval] top-k must be an integer",
        "'all'",
    ),
    (f'{TABLES}[eval]\npoint = "middle"\n', "[eval] point must be mode, median, ", "'middle'"),
    (
        f'{TABLES}[train]\nlr = [1e-3, 2e-3]\n[select]\nmetric = "mse"\nover = ["lr"]\n'
        "reach = 0.1\n",
        "[select] reach only applies to text models",
        "Leave it out",
    ),
    (f"{RATES}[select]\n", "[select] needs metric"),
    (
        f'{RATES}[select]\nmetric = "r3"\nover = ["lr"]\n',
        "[select] ",
        "metric 'r3'. Did you mean 'r2'?",
    ),
    (
        f'{RATES}[select]\nmetric = "coverage"\nover = ["lr"]\n',
        "[select] metric = 'coverage'",
        "Choose another",
    ),
    (
        f'{RATES}[select]\nmetric = "r2"\nover = ["rate"]\n',
        "[select] over of FILE 'rate'. Known: lr",
    ),
    (
        f'{RATES}[select]\nmetric = "r2"\nover = "lr"\nseeds = 0\n',
        "[select] seeds must be at least 1",
        "(got 0)",
    ),
    (f'{RATES}[select]\nmetric = "r2"\nover = "seed"\n', "[select] over of FILE 'seed'. Known: lr"),
    (
        f'{RATES}[select]\nmetric = "r2"\nreach = 0.9\n',
        "[select] reach ",
        "[train] steps, tokens or minutes to a list",
    ),
    (f'{RATES}[select]\nmetric = "r2"\n', "[select] needs over", "reach"),
    (
        f'{RATES}[eval]\nsplit = "validation"\n[select]\nmetric = "r2"\nover = ["lr"]\n',
        "[eval] split = 'validation'",
        "another split",
    ),
)


def test_what_is_not_understood_is_told(tmp_path: Path, says: Says) -> None:
    for text, *told in REFUSED:
        with case(text):
            path = written(tmp_path, text)
            with pytest.raises(UsageError) as caught:
                read_sweep(path)
            assert "\n" not in str(caught.value)
            says(caught, str(path), *(part.replace("of FILE", f"of {path}") for part in told))


def test_a_link_to_nothing_is_told_with_its_target(tmp_path: Path, says: Says) -> None:
    (tmp_path / "s.toml").symlink_to("absent.toml")
    with says.raises(UsageError, "s.toml: file not found", "'absent.toml'"):
        read_sweep(tmp_path / "s.toml")


def test_a_file_that_is_not_there_is_told(tmp_path: Path, says: Says) -> None:
    with says.raises(UsageError, f"{tmp_path}/no.toml: file not found"):
        read_sweep(tmp_path / "no.toml")
