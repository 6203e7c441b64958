"""``--help``, earlier names of options and commands, and hints of errors."""

import io
import re
import sys
from pathlib import Path

import pytest

from numtok import setting_names
from numtok.cli import main
from numtok.cli._help import PANELS
from numtok.cli._usage import split_hint
from numtok.data.tasks.base import TASKS
from numtok.encoding.schemes.base import SCHEMES
from numtok.encoding.text_tokenizers.base import TEXT_TOKENIZERS
from numtok.errors import UsageError
from numtok.library.arguments import settings_of
from numtok.numerals.policy import NumeralPolicy
from numtok.registry import spec_of
from numtok.settings import encode, eval, gen, train
from numtok.sweeps.file import read_sweep
from tests.cases import case
from tests.messages import Says
from tests.shell import Shell

COMMANDS = [
    path.stem.replace("_", "-")
    for path in sorted(Path(main.__file__).parent.glob("[a-z]*.py"))
    if path.stem != "main"
]


def test_the_list_of_commands_has_panels_of_one_line_per_command(numtok: Shell) -> None:
    shown = numtok("--help").out
    lines = shown.splitlines()
    assert lines[2] == "Find the best number encoding for your language model."
    assert "New here? Run `numtok demo`." in shown
    assert numtok("-h").out == numtok("help").out == shown
    titles = re.findall(r"╭─ ([\w ]+) ─", shown)
    assert titles == [*PANELS, "Options"]
    listed = dict(re.findall(r"^│ ([a-z][a-z-]+) +(\S.*?) +│$", shown, re.M))
    assert sorted(listed) == COMMANDS
    assert [one for one in listed.values() if len(one) > 55 or one.endswith(".")] == []
    for title, names in PANELS.items():
        panel = shown.partition(f"─ {title} ─")[2].partition("╰")[0]
        shown_names = re.findall(r"^│ ([a-z]+) ", panel, re.M)
        assert shown_names == [name for name in names if name in COMMANDS], title


def test_the_help_of_every_command_fits_80_columns_and_names_no_types(numtok: Shell) -> None:
    for name in COMMANDS:
        with case(name):
            ran = numtok(name, "--help")
            assert ran.code == 0
            assert [line for line in ran.out.splitlines() if len(line) > 80] == []
            assert not re.search(r"<(bool|str|int|float|list|path)", ran.out)
            assert "Example: numtok " in " ".join(ran.out.split())
            assert numtok(name, "-h").out == numtok("help", name).out == ran.out


def test_the_help_of_train_fits_two_screens_with_rare_options_at_the_end(numtok: Shell) -> None:
    shown = numtok("train", "--help").out
    assert len(shown.splitlines()) <= 80
    advanced = shown.partition("─ Advanced ─")[2]
    assert "--fsdp" in advanced and "--grad-clip" in advanced and "--lr-end" in advanced
    assert "│ --steps" not in advanced
    for old in ("--places", "--clip ", "--profile", "--shard", "--init "):
        assert old not in shown
    assert "(texts only; default 0.0)" in " ".join(advanced.replace("│", " ").split())


OLD = {
    "train --places x --steps": "--places is now --digit-positions",
    "train --clip 1 --steps": "--clip is now --grad-clip",
    "train --shard --steps": "--shard is now --fsdp",
    "train --init x --steps": "--init is now --init-from",
    "train --profile=x --steps": "--profile is now --trace",
    "gen arithmetic --samples": "--samples is now --rows",
    "gen arithmetic --places": "--places is now --decimals",
    "compare a --until x --by": "--until is now --tokens-to",
    "encode --like x --name": "--like is now --reuse-encoding",
    "encode --on-clip count --name": "--on-clip is now --on-overflow",
    "eval a --rows 3 --batch": "--rows is now --limit",
    "eval a --draws 3 --batch": "--draws is now --num-samples",
    "eval a --slots yes --batch": "--slots is now --fields",
    "encode a --numerals xval --name": "--numerals is now --numbers",
    "race a --rates 2 --seeds": "--rates is now --learning-rates",
}


@pytest.mark.parametrize(("words", "note"), OLD.items())
def test_an_earlier_option_works_and_prints_one_note(numtok: Shell, words: str, note: str) -> None:
    ran = numtok(*words.split())  # the last option lacks a value, so that nothing runs
    assert ran.code == 2
    assert ran.err.startswith(f"numtok: {note}\n") and ran.err.count(note) == 1
    assert "needs a value" in ran.err or "must be" in ran.err
    assert "unknown option" not in ran.err
    assert note not in numtok("-q", *words.split()).err


def test_synonyms_and_earlier_names_of_commands_work(numtok: Shell) -> None:
    for word, command in {
        "plot": "figure", "download": "fetch", "generate": "gen", "list": "ls", "delete": "rm",
    }.items():  # fmt: skip
        with case(word):
            ran = numtok(word, "--help")
            assert (ran.out, ran.err) == (numtok(command, "--help").out, "")
    ran = numtok("errors", "--help")
    assert ran.err == "numtok: numtok errors is now numtok diagnose\n"
    assert ran.out == numtok("diagnose", "--help").out
    ran = numtok("nupa", "x", "--metric", "mae")
    assert ran.err.startswith("numtok: numtok nupa is now numtok score --benchmark nupa\n")
    assert "--metric does not apply to --benchmark nupa" in ran.err


def test_earlier_names_work_in_the_configuration_file(numtok: Shell) -> None:
    Path("numtok.toml").write_text("[gen]\nsamples = 20\n[errors]\ntop = 3\n[nupa]\n")
    made = numtok("gen", "arithmetic")
    assert made.code == 0, made.err
    assert "numtok.toml: [gen] samples is now rows" in made.err
    assert "[errors] in numtok.toml is now [diagnose]" in made.err
    assert "[nupa] in numtok.toml is now [score]\n" in made.err
    assert '"samples": 20' in numtok("-q", "show", made.out.strip(), "--json").out


def test_two_names_of_a_command_in_the_configuration_file_are_refused(
    numtok: Shell, says: Says
) -> None:
    Path("numtok.toml").write_text("[plot]\ntop = 3\n[figure]\nrows = 3\n")
    told = ("numtok.toml: [plot] and [figure] set the same command", "Keep one")
    says.refused(numtok("ls"), 2, *told)


def test_earlier_names_work_in_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    monkeypatch.setattr(setting_names, "on_renamed", notes.append)
    setting_names.forget_notes()
    path = tmp_path / "s.toml"
    path.write_text(
        '[gen]\ntask = "arithmetic"\nsamples = 200\n[encode]\nscheme = "digits"\n'
        '[train]\nsteps = 1\nclip = [0.5, 1.0]\n[select]\nover = ["clip"]\nmetric = "r2"\n'
    )
    sweep = read_sweep(path)
    assert [(point, one.clip) for point, one in sweep.train] == [
        ({"grad-clip": "0.5"}, 0.5),
        ({"grad-clip": "1.0"}, 1.0),
    ]
    assert sweep.select is not None and sweep.select.over == ("grad-clip",)
    assert notes == [f"{path}: [gen] samples is now rows", f"{path}: [train] clip is now grad-clip"]


def test_earlier_names_work_as_arguments_in_python() -> None:
    setting_names.forget_notes()
    made = settings_of(train.Config, ("data",), {"digit_positions": "abacus", "grad_clip": 0.5})
    assert (made.places, made.clip) == ("abacus", 0.5)
    assert settings_of(eval.Config, ("model",), {"limit": 3}).rows == 3
    with pytest.warns(FutureWarning, match="places is now digit_positions"):
        made = settings_of(train.Config, ("data",), {"places": "abacus"})
    assert made.places == "abacus"
    with pytest.warns(FutureWarning, match="samples is now rows"):
        assert settings_of(gen.Config, ("arithmetic",), {"samples": 5}).samples == 5
    assert settings_of(train.Config, ("data",), {"gradient_checkpointing": True}).recompute
    assert settings_of(encode.Config, ("a.jsonl",), {"reuse_encoding": "x"}).like == "x"


def test_bare_keys_of_specs_are_yes_and_no() -> None:
    assert NumeralPolicy.parse("default,thousands,no-percent").thousands
    assert spec_of(SCHEMES.build("digits,reverse")) == "digits,reverse=yes"
    assert SCHEMES.build("digits,no-reverse") == SCHEMES.build("digits,reverse=no")
    with pytest.raises(UsageError, match=r"size needs a value\. Write size=VALUE"):
        TEXT_TOKENIZERS.build("words,size")


def test_on_a_terminal_the_hint_has_a_line_of_its_own(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("train", "x", "--steps", "3", "--minutes", "2")
    problem = "numtok: --steps and --minutes cannot be combined"
    advice = "Choose one of --steps, --tokens and --minutes"
    assert numtok(*words).err == f"{problem}. {advice}\n"
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    numtok(*words)
    assert terminal.getvalue() == f"{problem}\n  hint: {advice}\n"


def test_hints_are_last_sentences() -> None:
    for message, hint in (
        ("'a. B' is not a name", None),
        ("x is 1. Use 2", "Use 2"),
        ("x is missing, see a.b ... And more", None),
        ("unknown option --a. Did you mean --b? See `c`", "Did you mean --b? See `c`"),
    ):
        with case(message):
            assert split_hint(message)[1] == hint


def test_values_are_shown_as_typed(numtok: Shell) -> None:
    assert "--lr must be above 0 and below 1 (got 3e9)" in numtok("train", "x", "--lr", "3e9").err
    assert "(got -1)" in numtok("train", "x", "--batch=-1").err


def test_two_names_of_one_setting_are_refused(
    numtok: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr(setting_names, "on_renamed", lambda note: None)
    with says.raises(UsageError, "digit_positions", "places", "Keep one"):
        settings_of(train.Config, ("data",), {"digit_positions": "abacus", "places": "coupling"})
    with says.raises(UsageError, "arithmetic", "decimals", "places", "Keep one"):
        TASKS.build("arithmetic,decimals=2,places=3")
    path = tmp_path / "s.toml"
    path.write_text('[encode]\nscheme = "p10"\n[train]\nclip = 0.5\ngrad-clip = 1.0\n')
    with says.raises(UsageError, str(path), "[train]", "clip", "grad-clip", "Keep one"):
        read_sweep(path)
    Path("numtok.toml").write_text("[train]\nlr = 0.1\nlearning-rate = 0.2\n")
    says.refused(numtok("train", "data"), 2, "numtok.toml: [train]", "learning-rate", "Keep one")
