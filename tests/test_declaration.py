"""A setting is declared once; everything else is derived from that declaration."""

import doctest
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from docs.site.commands import pages
from numtok import cli, declaration, names, settings
from numtok.analysis.probing.probes.base import PROBES
from numtok.cli.output.printing import Format
from numtok.declaration import CommandSettings, SettingError, setting, settings_in
from numtok.errors import UsageError
from numtok.names import join_names, split_names
from numtok.registry import spec_of
from numtok.setting_versions import of_experiment, of_version
from numtok.setting_words import command_line
from numtok.settings import encode, eval, fetch, gen, train
from numtok.sweeps import file, stage_table
from tests.cases import case
from tests.messages import Says
from tests.shell import Shell


@dataclass(frozen=True)
class Boil(CommandSettings):
    eggs: int = setting(help="How many.", argument=True, at_least=1, at_most=12)
    minutes: float = setting(4.0, "How long.", above=0, below=60, counts="experiment")
    salt: str = setting("some", "How much.", choices=("none", "some", "much"), counts="version")
    lid: bool = setting(False, "Put it on.", counts="version", came_later=True)
    lists: tuple[str, ...] = setting((), "Repeated.", flag="list")
    names: tuple[str, ...] = setting((), "In one word.", joined=True)
    of: str | None = setting(None, "Only for tables.", of="tables")
    own: int = setting(0, "Even.", refuse=lambda value: "must be even" if value % 2 else None)
    again: bool = setting(False, "Make it again.", repeat=False)


def test_its_doctests_hold() -> None:
    assert [doctest.testmod(one).failed for one in (declaration, names)] == [0, 0]


def test_a_value_out_of_bounds_is_told_where_it_stands(says: Says) -> None:
    cases: list[tuple[str, Any, str]] = [
        ("eggs", 0, "1 to 12"),
        ("eggs", 13, "1 to 12"),
        ("minutes", 0.0, "above 0 and below 60"),
        ("minutes", 60.0, "above 0 and below 60"),
        ("salt", "all", "none, some or much"),
        ("own", 3, "even"),
    ]
    for key, value, told in cases:
        with case(key, value):
            with pytest.raises(SettingError) as caught:
                Boil(**{"eggs": 2, key: value})
            says(caught, f"--{key} must be ", told, f"(got {value!r})")
            place = "numtok.toml: [boil]"
            why = str(caught.value).removeprefix(f"--{key} ")
            assert caught.value.at(place) == f"{place} {key} {why}"
    assert [Boil(1, 0.001), Boil(12, 59.9)]  # within bounds


def test_an_empty_option_is_refused_instead_of_taken_for_the_default(says: Says) -> None:
    cases: list[tuple[str, Any]] = [("of", ""), ("lists", ("a", ""))]
    for key, value in cases:
        with case(key), pytest.raises(SettingError) as caught:
            Boil(2, **{key: value})
        says(caught, f"--{settings_in(Boil)[key].flag} must not be empty")
    assert Boil(2, names=("",)).names == ("",)  # a column without a name


def test_versions_and_experiments_have_what_counts() -> None:
    assert of_version(Boil(2)) == {"minutes": 4.0, "salt": "some"}
    assert of_version(Boil(2, lid=True))["lid"] is True
    assert of_experiment(Boil(2, lid=True)) == {"minutes": 4.0}


def test_the_command_line_says_everything_again() -> None:
    made = Boil(2, 5.5, "much", True, ("a", "b"), ("c,d", "e"), "x", 4, True)
    assert command_line(made) == [
        *("2", "--minutes", "5.5", "--salt", "much", "--lid", "--list", "a", "--list", "b"),
        *("--names", '"c,d",e', "--of", "x", "--own", "4"),
    ]
    assert "--of" not in command_line(made, "texts")
    assert command_line(Boil(2)) == ["2", "--minutes", "4", "--salt", "some", "--own", "0"]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1)))
def test_names_in_one_word_come_back(several: list[str]) -> None:
    assert split_names(join_names(several)) == tuple(several)


def test_flags_of_a_command_differ() -> None:
    for kind in [encode.Config, eval.Config, gen.Config, fetch.Config, train.Config]:
        with case(kind):
            flags = [one.flag for one in settings_in(kind).values()]
            assert len(set(flags)) == len(flags)


# --- one more line adds a setting everywhere ----------------------------------------------------

SETTINGS = '''
"""``numtok boil``: eggs -> boiled eggs."""

from dataclasses import dataclass

from numtok.declaration import CommandSettings, setting


@dataclass(frozen=True)
class Config(CommandSettings):
    """What is asked for."""

    eggs: int = setting(help="How many.", metavar="N", argument=True)
    salt: int = setting(2, "Grains.", at_least=0, counts="version")
'''
COMMAND = '''
"""``numtok boil``."""

import shlex

import typer

from numtok.cli.output.printing import Format, print_json
from numtok.setting_versions import of_version
from numtok.setting_words import command_line
from numtok.settings.boil import Config


def command(context: typer.Context, settings: Config, format: Format) -> None:
    """Boil eggs.

    Example: numtok boil 3
    """
    print_json({"settings": of_version(settings), "show": shlex.join(command_line(settings))})
'''


@pytest.fixture
def boil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a command whose setting ``salt`` is one line."""
    for package, text in ((settings, SETTINGS), (cli, COMMAND)):
        folder = tmp_path / "more" / package.__name__.rpartition(".")[2]
        folder.mkdir(parents=True)
        (folder / "boil.py").write_text(text, "utf-8")
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
        monkeypatch.delitem(sys.modules, f"{package.__name__}.boil", raising=False)


def test_a_setting_of_one_line_is_an_option_a_key_a_setting_and_a_row_of_the_reference(
    boil: None, numtok: Shell, says: Says
) -> None:
    assert "--salt" in numtok("boil", "--help").out
    assert '{"salt": 5}' in numtok("boil", "3", "--salt", "5").out
    assert '"show": "3 --salt 5"' in numtok("boil", "3", "--salt", "5").out
    Path("numtok.toml").write_text("[boil]\nsalt = 7\n")
    assert '{"salt": 7}' in numtok("boil", "3").out
    Path("numtok.toml").write_text("[boil]\nsalt = -1\n")
    ran = numtok("boil", "3")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    says(ran.err, "numtok: numtok.toml: [boil] salt ", "at least 0", "(got -1)")
    says(numtok("boil", "3", "--salt", "-1").err, "numtok: --salt ", "at least 0", "(got -1)")
    assert any("| `--salt N` | 2 | Grains" in page for _, page in pages())


def test_a_setting_of_one_line_is_a_key_of_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass(frozen=True)
    class Salted(train.Config):
        salt: int = setting(2, "Grains.", at_least=0)

    monkeypatch.setitem(stage_table.SETTINGS, "train", Salted)
    text = 'data = "a.jsonl"\n[encode]\nscheme = "p10"\n[train]\nsteps = 1\nsalt = [1, 3]\n'
    (tmp_path / "s.toml").write_text(text)
    sweep = file.read_sweep(tmp_path / "s.toml")
    assert [(point, getattr(one, "salt")) for point, one in sweep.train] == [  # noqa: B009
        ({"salt": "1"}, 1),
        ({"salt": "3"}, 3),
    ]
    (tmp_path / "s.toml").write_text(text.replace("[1, 3]", "-1"))
    with pytest.raises(UsageError, match=r"s\.toml: \[train\] salt must be .*got -1"):
        file.read_sweep(tmp_path / "s.toml")


# --- numtok.toml and the command line -----------------------------------------------------------


def test_what_was_typed_replaces_what_a_file_says_instead_of_it(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("numtok.toml").write_text(
        '[train]\nminutes = 3\n[encode]\nscheme = "p10"\nnormalize = "none"\n'
    )
    seen: list[Any] = []

    def command(context: typer.Context, settings: train.Config, format: Format) -> None:
        seen.append(settings)

    def encoding(context: typer.Context, settings: encode.Config, format: Format) -> None:
        seen.append(settings)

    monkeypatch.setattr("numtok.cli.train.command", command)
    monkeypatch.setattr("numtok.cli.encode.command", encoding)
    assert numtok("train", "data", "--steps", "5").code == 0
    assert numtok("train", "data").code == 0
    assert numtok("encode", "a.jsonl", "--reuse-encoding", "x").code == 0
    assert numtok("encode", "a.jsonl").code == 0
    assert (seen[0].steps, seen[0].minutes) == (5, None)
    assert (seen[1].steps, seen[1].minutes) == (None, 3)
    assert (seen[2].like, seen[2].scheme, seen[2].normalize) == ("x", None, None)
    assert (seen[3].scheme, seen[3].normalize) == ("p10", "none")


def test_the_file_takes_single_values_lists_and_no_other_types(numtok: Shell, says: Says) -> None:
    """A repeatable option needs no brackets, and names may be a list."""
    Path("a.csv").write_text("w,x,y,z\n0,1,2,3\n")
    words = ("encode", "a.csv", "--scheme", "p10", "--dry-run", "--json")
    for keys, text in (
        ('target = "x"\ndrop = ["y"]', "w: 0\nz: 3\nx: 1"),
        ('target = ["x"]\ndrop = "y,z"', "w: 0\nx: 1"),
        ('target = "x"\ndrop = []', "w: 0\ny: 2\nz: 3\nx: 1"),
    ):
        with case(keys):
            Path("numtok.toml").write_text(f"[encode]\n{keys}\n")
            ran = numtok(*words)
            rows = {row["what"]: row["value"] for row in json.loads(ran.out)["rows"]}
            assert rows["row 1"] == text
    for key, told in (
        ('scheme = ["p10", "xval"]', "scheme must be a string"),
        ("workers = true", "workers must be an integer"),
        ("workers = [2]", "workers must be an integer"),
        ('target = ["x", 5]', "target must be a list of strings"),
        ('format = "yaml"', "format must be table, json, csv or md"),
    ):
        with case(key):
            Path("numtok.toml").write_text(f"[encode]\n{key}\n")
            ran = numtok("encode", "a.csv")
            assert ran.code == 2
            says(ran.err, f"numtok: numtok.toml: [encode] {told}")
    Path("numtok.toml").write_text("[gen]\nlow = 1.00\nrows = 20\n")  # two decimals
    assert '"low": "1.00"' in numtok("show", numtok("gen", "arithmetic").out.strip(), "--json").out


def test_keys_of_any_kind_may_stand_in_the_file_and_count_for_theirs(numtok: Shell) -> None:
    Path("numtok.toml").write_text('[gen]\noperands = 2\nplanets = "2"\nrows = 20\n')
    made = numtok("gen", "arithmetic")
    assert made.code == 0, made.err
    assert '"operands": 2' in numtok("show", made.out.strip(), "--json").out
    Path("numtok.toml").write_text("[gen]\noperand = 2\n")
    assert "unknown key in [gen] of numtok.toml 'operand'. Did you mean 'operands'?" in (
        numtok("gen", "arithmetic").err
    )


@pytest.mark.integration
def test_the_help_of_commands_loads_no_model_and_no_arrays() -> None:
    import subprocess

    script = (
        "import sys\nfrom typer.testing import CliRunner\nfrom numtok.cli.main import build\n"
        "names = [one.name for one in build().registered_commands]\n"
        "for name in names:\n"
        "    made = CliRunner().invoke(build([name, '--help']), [name, '--help'])\n"
        "    assert made.exit_code == 0, (name, made.output)\n"
        "print({'torch', 'numpy', 'pyarrow', 'numba'} & sys.modules.keys())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr


def test_settings_have_the_same_names_in_a_spec_and_as_options() -> None:
    made = PROBES.build("confidence,from=1,to=2")
    assert spec_of(made) == "confidence,from=1.0,to=2.0"
    assert made == PROBES.build("confidence,from_=1,to=2")  # the spelling in Python
    with pytest.raises(UsageError, match=r"'form'. Did you mean 'from'\?"):
        PROBES.build("confidence,form=1")
    with pytest.raises(UsageError, match=r"from must be a number .*'x'"):
        PROBES.build("confidence,from=x")
