"""Commands as functions, and their results as objects."""

import doctest
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest

import numtok
from numtok import settings
from numtok.declaration import Setting, setting, settings_in
from numtok.errors import DataError, UsageError
from numtok.library import parameters, view
from numtok.library.arguments import settings_of
from numtok.setting_names import in_python
from numtok.settings.gen import Config as GenConfig
from numtok.stages import encode as encode_stage
from numtok.stages import train as train_stage
from numtok.store.store import Store
from tests.cases import case, each
from tests.fakereports import Fake, make
from tests.stages.test_eval import World, quiet

#: Commands whose functions have other names; ``report`` is ``load``.
NAMES = {"diagnose": "error_analysis", "report": "load"}
COMMANDS = sorted(
    one.name for one in pkgutil.iter_modules(settings.__path__) if not one.name.startswith("_")
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_THREADS", "1")
        yield World(tmp_path_factory.mktemp("library"))


@each("command", COMMANDS)
def test_every_command_is_a_function_of_its_settings(command: str) -> None:
    function = getattr(numtok, NAMES.get(command, command))
    if command == "report":
        return
    config = pkgutil.resolve_name(f"numtok.settings.{command}:Config")
    names = [one.argument_name for one in settings_in(config).values()]
    assert set(names) <= set(inspect.signature(function).parameters)
    for name in [*names, "store", "quiet"] if command != "explain" else names:
        assert re.search(rf"\n{name} : .+\n    \S", function.__doc__ or ""), name


CONFIGS = {
    command: pkgutil.resolve_name(f"numtok.settings.{command}:Config") for command in COMMANDS
}
SETTINGS = [(command, name) for command in COMMANDS for name in settings_in(CONFIGS[command])]


def wrong_value(field: Setting) -> Any:
    """Return a value outside the bounds of a setting; None if it has no bounds."""
    if field.choices:
        return "no-such-choice"
    if field.at_least is not None:
        return field.at_least - 1
    return field.above


@each("command", [command for command in COMMANDS if command != "report"])
def test_errors_name_the_python_argument_of_every_setting(command: str) -> None:
    config, function = CONFIGS[command], getattr(numtok, NAMES.get(command, command))
    declared = settings_in(config)
    required = {name: "x" for name, field in declared.items() if field.required}
    required |= {"scheme": "xval"} if command == "encode" else {}
    for name, field in declared.items():
        with case(name):
            argument = field.argument_name
            told = in_python(f"--{field.flag} 5 or --other-one", config)
            assert told == f"{argument} 5 or other_one"
            wrong = wrong_value(field)
            if wrong is None or command == "explain":
                continue
            with pytest.raises(UsageError, match=rf"^{argument}\b") as raised:
                function(**required | {argument: wrong})
            assert "--" not in str(raised.value)


#: Words of the command line, which have no meaning in a call.
ONLY_OF_COMMANDS = (
    r"--|\brepeatable\b|given again|given more than once|\bexit\b|\boptions?\b|standard input"
    r"|\bcommand\b|numtok \w+ --"
)


@each(("command", "name"), SETTINGS)
def test_parameters_are_described_for_python(command: str, name: str) -> None:
    described = parameters.description(CONFIGS[command], settings_in(CONFIGS[command])[name])
    assert described.endswith((".", "...", ")")) and not re.search(ONLY_OF_COMMANDS, described)


def test_descriptions_are_of_settings_that_exist() -> None:
    known = {name for _, name in SETTINGS} | {f"{command}.{name}" for command, name in SETTINGS}
    assert set(parameters.DESCRIPTIONS) <= known


def test_dir_lists_public_names_only() -> None:
    names = dir(numtok)
    assert {"Codec", "batch", "embedder", "head", "load", "train", "__version__"} <= set(names)
    assert [name for name in names if name.startswith("_")] == ["__version__"]
    assert not [name for name in names if isinstance(getattr(numtok, name), ModuleType)]


@pytest.mark.integration
def test_importing_numtok_loads_nothing_heavy() -> None:
    program = """if True:
        import sys
        import numtok
        heavy = {"msgspec", "numba", "numpy", "polars", "pyarrow", "rich", "scipy", "torch"}
        print(sorted(heavy & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# --- settings ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cook:
    """Settings of a fake command."""

    dishes: tuple[str, ...] = setting(help="what to cook.", argument=True)
    hours: int = setting(2, "How long.", at_least=1)
    out: Path | None = setting(None, "Where to.")  # noqa: RUF009  # a field


class Dish:
    """An object with a REF."""

    ref = "soup@0123"


@each(
    ("arguments", "named", "made"),
    [
        (("a",), {}, Cook(("a",))),
        (("a", Path("b"), Dish()), {"hours": 3}, Cook(("a", "b", "soup@0123"), 3)),
        ((["a", Dish()],), {}, Cook(("a", "soup@0123"))),
        ((), {"dishes": Dish(), "out": "x.png"}, Cook(("soup@0123",), out=Path("x.png"))),
        (("a",), {"hours": np.int64(3)}, Cook(("a",), 3)),
    ],
)
def test_settings_are_given_in_order_and_by_name(
    arguments: tuple[Any, ...], named: dict[str, Any], made: Cook
) -> None:
    settings = settings_of(Cook, arguments, named)
    assert settings == made
    assert type(settings.hours) is int


def test_settings_of_a_kind_go_to_the_kind() -> None:
    made = settings_of(GenConfig, ("arithmetic",), {"operands": 3, "seed": 1})
    assert made == GenConfig("arithmetic", seed=1, options={"operands": "3"})
    off = {"spaces": False, "figures": 0, "decimals": 1, "high": None}
    made = settings_of(GenConfig, ("arithmetic",), off)
    assert made.options == {"spaces": "no", "figures": "0", "places": "1"}


@each(
    ("arguments", "named", "words"),
    [
        (("a",), {"hour": 3}, ("'hour'", "hours")),
        (("a",), {"dishes": "b"}, ("dishes", "twice")),
        ((), {}, ("dishes", "missing", "what to cook")),
    ],
)
def test_settings_that_cannot_be_are_refused(
    arguments: tuple[Any, ...], named: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError) as raised:
        settings_of(Cook, arguments, named)
    assert all(word in str(raised.value) for word in words), raised.value


def test_one_argument_too_many_is_refused() -> None:
    with pytest.raises(UsageError, match="positional argument 5"):
        settings_of(GenConfig, ("arithmetic", 5), {})


# --- artifacts --------------------------------------------------------------------------------


@pytest.mark.integration
def test_a_function_makes_the_artifact_of_its_command(world: World) -> None:
    data, store = world.data(), world.store.root
    made = numtok.encode(data.ref, scheme="xval", store=store)
    same = encode_stage.run(encode_stage.Config((data.ref,), scheme="xval"), world.store, quiet)
    assert (made.ref, same.made) == (same.ref, False)
    assert made.splits == ["test", "train"] or set(made.splits) == {"test", "train"}
    assert made.to_polars("test").height == made.counts["rows_test"]
    assert made.codec.scheme == "xval"
    with pytest.raises(UsageError, match="Known: test, train"):
        made.to_arrow("validation")


@pytest.mark.integration
def test_an_artifact_brings_its_store_along(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors name arguments, not options."""
    asked: list[Any] = []

    def run(config: Any, store: Store, *given: Any) -> Any:
        asked.extend((config, store.root))
        raise UsageError("--lr 0.7 is not possible")

    monkeypatch.setattr(train_stage, "run", run)
    encoded = numtok.load(world.encoded("xval").ref, store=world.store.root)
    with pytest.raises(UsageError, match=r"^learning_rate 0.7 is"):
        numtok.train(encoded, steps=3, learning_rate=0.7)
    assert asked == [train_stage.Config(encoded.ref, steps=3, learning_rate=0.7), world.store.root]


@each("command", ["encode", "profile", "compare", "score", "race"])
def test_an_empty_list_of_inputs_is_refused_like_a_missing_one(command: str) -> None:
    with pytest.raises(UsageError, match=r"^(inputs|reports|files) is missing: "):
        getattr(numtok, command)([])


def test_an_empty_path_of_the_store_is_refused() -> None:
    with pytest.raises(UsageError, match="store must not be empty"):
        numtok.load("rooms", store="")


@pytest.mark.integration
def test_an_artifact_is_loaded_by_itself_by_its_ref_and_by_its_folder(world: World) -> None:
    data = numtok.load(world.data().ref, store=world.store.root)
    for ref, store in ((data, None), (data.path, world.store.root), (data.ref, data.store)):
        with case(ref):
            assert numtok.load(ref, store=store).path == data.path
    with pytest.raises(UsageError, match="ref must be a string or a path"):
        numtok.load(5)


@pytest.mark.integration
def test_a_loaded_model_answers_texts(world: World) -> None:
    artifact = world.by_chance(world.encoded("p1000"), "mlm", text=-20.0)
    model = numtok.load(artifact.ref, store=world.store.root)
    texts = ["(1 + 2) = [?]", "([?] - 2) = [?]"]
    one, two = model.predict(texts)
    assert one.text.startswith("(1 + 2) = ") and len(two.numbers) == 2
    by_command = numtok.predict(model, text=texts)
    assert [row["predicted"]["text"] for row in by_command] == [one.text, two.text]
    assert model.predict([]) == []
    for wrong, words in [(["5", None], "null .*text 1"), (["[?]", "none"], r"text 1: .*\[\?\]")]:
        with pytest.raises(DataError, match=words):
            model.predict(wrong)
    with pytest.raises(UsageError, match="unknown setting 'points'"):
        model.predict(["[?]"], points="mean")


@pytest.mark.integration
def test_settings_of_other_data_are_rejected_as_on_the_command_line(world: World) -> None:
    store = world.store.root
    artifact = world.by_chance(world.encoded("p1000"), "mlm", text=-20.0)
    model = numtok.load(artifact.ref, store=store)
    frame = {"x": [1.0, 2.0, 3.0, 4.0] * 8, "y": [2.0, 4.0, 6.0, 8.0] * 8}
    table = numtok.table(pl.DataFrame(frame), target="y", split="test=0.2", store=store)
    with pytest.raises(UsageError, match=r"^steps does not apply to a table"):
        numtok.train(table, steps=1000)
    with pytest.raises(UsageError, match=r"^curriculum does not apply to a table"):
        numtok.train(table, curriculum="phases.toml")
    with pytest.raises(UsageError, match=r"^epochs does not apply to encoded data"):
        numtok.train(world.encoded("p1000").ref, epochs=3, store=store)
    with pytest.raises(UsageError, match=r"^top_k does not apply"):
        numtok.eval(model, top_k=3)
    with pytest.raises(UsageError, match=r"^fold does not apply to a model of texts"):
        numtok.predict(model, text=["[?]"], fold=1)
    with pytest.raises(UsageError, match=r"^fold does not apply to a model of texts"):
        model.predict(["[?]"], fold=1)
    trained = numtok.train(table, epochs=1, patience=5)  # a default may be repeated
    with pytest.raises(UsageError, match=r"^fields does not apply"):
        numtok.eval(trained, fields="yes")


def test_a_report_is_figures_and_predictions(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, second = (make(store, Fake(scheme=scheme, count=40)) for scheme in ("p1000", "xval"))
    report = numtok.load(first.ref, store=tmp_path)
    assert report.metrics["r2"].n == 40
    assert report.to_polars()["truth"].len() == 40
    assert "r2" in str(report) and "<table>" in report._repr_html_()
    compared = numtok.compare(report, second.ref, metrics=["mae"])
    assert "mae" in str(compared) and compared.result.parts


def test_what_a_notebook_shows_is_escaped(tmp_path: Path) -> None:
    report = make(Store(tmp_path), Fake(scheme="<script>alert(1)</script>"), name="odd")
    shown = numtok.load(report.ref, store=tmp_path)._repr_html_()
    assert "<script" not in shown and "&lt;script" in shown


def test_tables_become_html() -> None:
    assert doctest.testmod(view) == (0, 1)


def test_a_number_is_explained() -> None:
    explained = numtok.explain(-60.2, schemes=["p1000"])
    assert explained.result[0].tokens == ("-", "602", "E-1")
    assert "602" in str(explained) and "602" in explained._repr_html_()
    with pytest.raises(UsageError, match="p1000"):
        numtok.explain("1", schemes="p100")


def test_the_numbers_of_a_text_are_explained() -> None:
    explained = numtok.explain(text="dose 7.5 x2")
    assert [number.value for number in explained.result.numbers] == [7.5]
    assert [word.text for word in explained.result.unread] == ["x2"]
    assert "«7.5»" in str(explained)
    codec = numtok.Codec.fit(["1"], scheme="p10", numerals="percent")
    assert [number.literal for number in codec.find("7% of 3").numbers] == ["7%", "3"]
    with pytest.raises(UsageError, match="text"):
        numtok.explain(1, text="a")
