"""``numtok figure``: output files and errors."""

import re
import shlex
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from numtok.analysis import drawing
from numtok.analysis.drawing import default_size, image
from numtok.analysis.figures.density import Density
from numtok.analysis.figures.truth import Truth
from numtok.analysis.picture import (
    Axis,
    Band,
    BarMarks,
    LineMark,
    Mark,
    Panel,
    Picture,
    Points,
    Ticks,
    axis_of,
)
from numtok.stages.figure import picture_of
from numtok.stages.table import Config as TableConfig
from numtok.stages.table import run as table
from numtok.store.store import Store
from tests.cases import case
from tests.chain import evaluated, trained
from tests.fakereports import Fake, make
from tests.messages import Says
from tests.shell import Shell

TINY = "mlp,layers=1,width=8"
SVG = "{http://www.w3.org/2000/svg}"


def rows(features: str) -> str:
    """Return CSV in which y is the sine of x. Every fourth row is in the test split."""
    lines = [f"{features},y,split"]
    for index in range(80):
        values = index / 10, *["1"] * features.count(","), np.sin(index / 10)
        lines.append(",".join([*map(str, values), "train" if index % 4 else "test"]))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder whose store has fake reports, and models and reports of small tables."""
    root = tmp_path_factory.mktemp("made")
    store = Store(root / "artifacts")
    for count in (10, 100):
        for scheme in ("p10", "xval"):
            fake = Fake(scheme, noise=300 / count, invalid=2, settings={"rows": count})
            make(store, fake, f"{scheme}-{count}")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more threads slow down such small models
    for name, features, head in (
        ("sine", "x", "mdn:5"), ("sine", "x", "pointwise"), ("two", "x,z", "pointwise"),
    ):  # fmt: skip
        (root / f"{name}.csv").write_text(rows(features))
        table(TableConfig(str(root / f"{name}.csv"), target="y"), store)
        model = f"{name}-{head.partition(':')[0]}"
        trained(store, name, preset=TINY, head=head, epochs=2, name=model)
        evaluated(store, model, name, name=f"{model}-test")
    yield root
    torch.set_num_threads(threads)


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder, which is the working folder of ``numtok``."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def texts(svg: Path) -> list[str]:
    return ["".join(one.itertext()).strip() for one in ElementTree.parse(svg).iter(f"{SVG}text")]


KINDS = [
    ("truth p10-100 xval-100",
     ["true value", "prediction", "p10, arithmetic-p10", "prediction = true value"], (840, 460)),
    ("truth sine-mdn-test --seen --scale signed-log",
     ["true value", "prediction", "mdn:5", "in the train split"], (800, 600)),
    ("curve sine-mdn-test sine-pointwise-test",
     ["x", "y", "sine", "true value", "mdn:5", "pointwise",
      "Bands: from the 5% to the 95% quantile."],
     (800, 600)),
    ("density sine-mdn sine-pointwise sine --rows 15",
     ["x", "y", "sine (test)", "mdn:5", "pointwise", "true value", "one sample per row"],
     (1260, 460)),
    ("lines p10-10 p10-100 --x rows --metric relative-mse --scale log",
     ["rows", "10", "100", "relative mean squared error, lower is better", "p10"], (800, 600)),
    ("bars sine-mdn-test sine-pointwise-test --metric kendall-tau",
     ["Kendall's tau, higher is better", "sine", "mdn:5", "pointwise"], (800, 600)),
    ("calibration sine-mdn-test",
     ["level of the interval", "fraction of true values within", "calibrated", "mdn:5"],
     (840, 460)),
    ("learning sine-mdn-test sine-pointwise-test --over samples",
     ["rows read", "loss on the validation split", "sine", "mdn:5", "pointwise"], (800, 600)),
    ("costs p10-100 xval-10 --cost parameters",
     ["R², higher is better", "parameters", "p10", "arithmetic-xval"], (840, 460)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"), [one[:2] for one in KINDS], ids=[one[0] for one in KINDS]
)
def test_each_kind_is_an_svg(numtok: Shell, folder: Path, words: str, expected: list[str]) -> None:
    ran = numtok("figure", *shlex.split(words), "--out", "a.svg")
    assert (ran.code, ran.out, ran.err) == (0, "a.svg\n", "")
    shown = texts(folder / "a.svg")
    assert [text for text in expected if text not in shown] == []


@pytest.mark.parametrize(
    ("words", "size"),
    [
        pytest.param(words, size, id=words, marks=[pytest.mark.slow] * (place % 4 > 0))
        for place, (words, _, size) in enumerate(KINDS)
    ],
)
def test_each_kind_is_a_png(numtok: Shell, folder: Path, words: str, size: tuple[int, int]) -> None:
    from PIL import Image

    assert numtok("figure", *shlex.split(words), "--out", "a.png").out == "a.png\n"
    data = (folder / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == size
    pixels = np.asarray(Image.open(folder / "a.png"))
    assert pixels.shape == (size[1], size[0], 4)
    assert pixels.std() > 8  # something is drawn


def test_the_numbers_of_encoded_train_data_are_marked(numtok: Shell, folder: Path) -> None:
    row = '{{"text": "x {0} y {0}9", "targets": {{"answer": [[2, 3]]}}, "split": "{1}"}}\n'
    rows = [row.format(index % 3, "train" if index < 8 else "test") for index in range(9)]
    (folder / "data.jsonl").write_text("".join(rows))
    data = numtok("encode", "--scheme", "p10", "--workers", "1", "data.jsonl").out.strip()
    store = Store(folder / "artifacts")
    report = make(store, Fake("p10", data=data), "of-text")
    picture = picture_of(Truth(target="answer", seen=True), [report.ref], store)
    [ticks] = [mark for mark in picture.panels[0].marks if isinstance(mark, Ticks)]
    assert ticks.x.tolist() == [0.0, 1.0, 2.0]


def test_figures_are_deterministic_and_name_their_command(numtok: Shell, folder: Path) -> None:
    words = shlex.split("figure lines p10-10 p10-100 xval-10 xval-100 --x rows --size 500x300")
    for name in ("a.svg", "b.svg", "a.png", "b.png"):
        assert numtok(*words, "--out", name).code == 0
    for kind in ("svg", "png"):
        first, second = ((folder / f"{name}.{kind}").read_bytes() for name in "ab")
        assert first == second
        assert b"numtok figure lines,x=rows p10-10 p10-100 xval-10 xval-100" in first
    root = ElementTree.parse(folder / "a.svg").getroot()
    assert (root.get("width"), root.get("height")) == ("500", "300")
    assert not list(folder.glob(".*"))


def test_what_cannot_be_drawn_is_one_line(numtok: Shell, folder: Path, says: Says) -> None:
    for words, code, told in (
        ("bar p10-10", 2, "figure 'bar'. Did you mean 'bars'?"),
        ("truth p10-11", 2, "p10-11"),
        ("truth sine", 2, "expected a report, but 'sine' is a table"),
        ("truth p10-10 --x rows", 2, "unknown option --x. See `numtok figure truth --help`"),
        (
            "truth p10-10 --scale loglog",
            2,
            "linear, log or signed-log (got 'loglog')",
        ),
        ("truth p10-10 --scale log", 2, "--scale log needs values above 0"),
        ("truth p10-10 --size 80", 2, "10000 each, such as 800x600 (got '80')"),
        ("truth p10-10 --size 80x600", 2, "10000 each, such as 800x600 (got '80x600')"),
        ("lines p10-10", 2, "lines needs --x KEY"),
        ("lines p10-10 --x rows --over days", 2, "--over must be seeds or folds"),
        ("lines p10-10 --x row", 2, "Did you mean 'rows'? Known: rows, steps"),
        ("lines p10-10 --x rows --metric r3", 2, "unknown metric 'r3'"),
        ("bars p10-10", 2, "reports are of 1: p10"),
        ("curve two-pointwise-test", 2, "one numeric feature, but two@"),
        ("density sine-mdn", 2, "density needs one table"),
        ("learning p10-10", 2, "there is nothing to draw over seconds"),
        ("learning sine-mdn-test --over epochs", 2, "--over must be "),
        ("costs p10-10 --metric crps", 2, "there is nothing to draw: no report has both crps"),
        ("costs p10-10 --cost money", 2, "--cost must be "),
        ("density sine-mdn sine --rows 0", 2, "--rows must be "),
        ("density sine-mdn sine --split tests", 2, "fold 0 'tests'. Did you mean 'test'?"),
        ("density two-pointwise sine", 3, "was trained on other columns than those of sine@"),
    ):
        with case(words):
            says.refused(numtok("figure", *shlex.split(words), "--out", "a.png"), code, told)
            assert not (folder / "a.png").exists()


def test_a_density_is_drawn_over_the_common_fold(numtok: Shell, folder: Path) -> None:
    store = Store(folder / "artifacts")
    lines = ["x,y,split_0,split_1"]
    for index in range(40):
        splits = [["test", "train"][index % 4 != fold] for fold in (0, 1)]
        lines.append(",".join([str(index), str(index % 7), *splits]))
    (folder / "folds.csv").write_text("\n".join(lines) + "\n")
    table(TableConfig("folds.csv", target="y"), store)
    for fold in (0, 1):
        trained(store, "folds", preset=TINY, head="mdn:2", epochs=2, fold=fold, name=f"of-{fold}")
    picture = picture_of(Density(), ["of-1", "folds"], store)
    truth = next(mark for mark in picture.panels[0].marks if isinstance(mark, Points))
    assert truth.x.tolist() == list(range(1, 40, 4))
    ran = numtok("figure", "density", "of-0", "of-1", "folds", "--out", "a.png")
    assert (ran.code, ran.out) == (2, "")
    assert " was trained on fold 1, but of-0@" in ran.err and "models of one fold" in ran.err


def test_a_file_of_another_kind_or_in_no_folder_is_refused(
    numtok: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    truth = "figure", "truth", "p10-10", "--out"
    assert numtok(*truth, "a.pdf").out == "a.pdf\n"
    assert (folder / "a.pdf").read_bytes().startswith(b"%PDF-")
    says.refused(numtok(*truth, "a.jpg"), 2, "--out must end in .png, .svg, .pdf (got a.jpg)\n")
    nowhere = numtok(*truth, "nowhere/a.png")
    says.refused(nowhere, 2, "--out nowhere/a.png: nowhere is not a folder")
    monkeypatch.setattr(drawing, "find_spec", lambda name: None)
    package = "vl-convert-python"
    says.refused(
        numtok(*truth, "a.png"), 2, f"the package {package}. Install it: pip install {package}\n"
    )


# --- drawing -------------------------------------------------------------------------------------


def panel(title: str = "t") -> Panel:
    x = np.array([1.0, 2.0])
    line = LineMark(label="one", x=x, y=x, colour=0, dots=True, low=x, high=x)
    return Panel(title=title, x=Axis(label="x"), y=Axis(label="y"), marks=[line])


@pytest.mark.parametrize(
    ("count", "size"),
    [(1, (800, 600)), (2, (840, 460)), (3, (1260, 460)), (4, (840, 840)), (10, (1680, 1220))],
)
def test_many_panels_stand_in_a_grid(count: int, size: tuple[int, int]) -> None:
    assert default_size(Picture([panel()] * count)) == size


def test_many_names_take_more_height() -> None:
    zeros = np.zeros(40)
    bars: dict[str, Any] = {"lengths": zeros, "low": zeros, "high": zeros, "colour": 0}
    marks = [BarMarks(label="a", places=np.arange(40.0), **bars)]
    y = Axis(label="", names=tuple(map(str, range(40))))
    panel = Panel(title="", x=Axis(label="x"), y=y, marks=marks)
    assert default_size(Picture([panel])) == (800, 1180)


def test_dollars_and_letters_of_other_scripts_are_drawn_as_they_are(tmp_path: Path) -> None:
    x = np.array([1.0, 2.0])
    marks = [Points(label="$a$ & <b>", x=x, y=x)]
    price, y = Axis(label="cost in $"), Axis(label="y")
    odd = Panel(title="$price$ of 价格", x=price, y=y, marks=marks)
    (tmp_path / "a.svg").write_bytes(image(Picture([odd], ["$5"]), "svg", None, "test"))
    shown = texts(tmp_path / "a.svg")
    assert {"$price$ of 价格", "cost in $", "$a$ & <b>", "$5"} <= set(shown)
    assert image(Picture([odd]), "png", None, "test").startswith(b"\x89PNG")


def test_labels_that_all_panels_share_stand_at_the_edges_alone(tmp_path: Path) -> None:
    picture = Picture([panel(str(index)) for index in range(4)])
    (tmp_path / "a.svg").write_bytes(image(picture, "svg", None, "test"))
    shown = texts(tmp_path / "a.svg")
    assert (shown.count("x"), shown.count("y"), shown.count("one")) == (2, 2, 1)
    # A small picture is drawn without a warning.
    assert image(Picture([panel("a long title " * 5)] * 9), "png", (200, 200), "test")


def heights(panel: Panel) -> list[float]:
    """Return the y coordinates in pixels of the only line or band of a panel; 0 is the top."""
    drawn = ElementTree.fromstring(image(Picture([panel]), "svg", None, "test"))
    [path] = [each.attrib["d"] for each in drawn.iter(f"{SVG}path") if "opacity" in each.attrib]
    return [float(y) for y in re.findall(r"[ML][^,]+,([-0-9.e]+)", path)]


def test_values_that_are_close_together_and_far_from_0_stay_apart() -> None:
    x = np.linspace(0, 86_400, 50)
    line = LineMark(label="time", x=x, y=1_700_000_000 + x)
    steps = -np.diff(heights(Panel(x=Axis(label="x"), y=Axis(label="y"), marks=[line])))
    assert len(steps) == 49 and steps == pytest.approx(steps.mean(), abs=0.01)


def test_what_a_logarithm_cannot_show_is_drawn_at_the_lower_end() -> None:
    x, values = np.arange(5.0), np.array([1.0, 2.0, -3.0, 0.0, 4.0])
    y_axis = Axis(label="y", scale="log", low=0.1, high=10.0)
    marks: list[Mark] = [
        LineMark(label="line", x=x, y=values),
        Band(label="band", x=x, low=values, high=np.full(5, 5.0)),
    ]
    for mark in marks:
        drawn = heights(Panel(x=Axis(label="x"), y=y_axis, marks=[mark]))
        assert [y == max(drawn) for y in drawn[:5]] == [False, False, True, True, False]


@pytest.mark.parametrize("ends", [(None, None), (0.0, 10.0)])
def test_a_band_without_an_upper_end_goes_to_the_top(ends: tuple[float | None, ...]) -> None:
    high = np.array([2.0, 3.0, np.inf, 5.0])
    band = Band(label="band", x=np.arange(4.0), low=np.ones(4), high=high)
    y = Axis(label="y", low=ends[0], high=ends[1])
    *_, last, endless, second, first = heights(Panel(x=Axis(label="x"), y=y, marks=[band]))
    assert endless == 0 and endless <= last < second < first


@pytest.mark.parametrize(
    ("values", "labels"),
    [([5.0, 9.0], {"5", "7", "9"}), ([-3.0, 40.0], {"0", "10", "20"})],
)
def test_a_signed_logarithm_has_several_labels(
    tmp_path: Path, values: list[float], labels: set[str]
) -> None:
    axis = axis_of("y", "signed-log", np.array(values), 0.05)
    dots = Points(label="dot", x=np.array(values), y=np.array(values))
    drawn = image(Picture([Panel(x=axis, y=axis, marks=[dots])]), "svg", None, "test")
    (tmp_path / "a.svg").write_bytes(drawn)
    assert labels <= set(texts(tmp_path / "a.svg"))
