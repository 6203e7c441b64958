"""numtok.toml: its valid contents, and the message for each mistake."""

from pathlib import Path

import pytest

from numtok.config import Config, load
from numtok.errors import UsageError
from tests.cases import case
from tests.messages import Says


def written(folder: Path, text: str) -> Path:
    (folder / "numtok.toml").write_text(text, "utf-8")
    return folder


def test_no_file_is_an_empty_configuration(tmp_path: Path) -> None:
    assert load(tmp_path) == Config(None, (), {})


def test_paths_start_at_the_folder_of_the_file(tmp_path: Path) -> None:
    text = 'store = "here"\n[plugins]\nfolders = ["mine", "/else"]\n[encode]\nscheme = "p10"\n'
    assert load(written(tmp_path, text)) == Config(
        tmp_path / "here", (tmp_path / "mine", Path("/else")), {"encode": {"scheme": "p10"}}
    )


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    text = '\ufeffstore = "here"\n'
    assert load(written(tmp_path, text)) == Config(tmp_path / "here", (), {})


def test_a_mistake_is_named_in_one_line(tmp_path: Path, says: Says) -> None:
    for text, parts in [
        ("[encode", ["numtok.toml cannot be read: "]),
        ("a = 1\na = 2", ["numtok.toml cannot be read: "]),
        ('stor = "x"', ["numtok.toml 'stor'", "'store'?", "Known: store. "]),
        ("store = 1", ["numtok.toml: store", "a path", "got 1"]),
        ('store = ""', ["numtok.toml: store", "a path", "got ''"]),
        ("plugins = 1", ["numtok.toml: plugins", "the key folders", "got 1"]),
        ("[plugins]\nfolder = []", ["[plugins] of numtok.toml 'folder'", "Did you "]),
        ("[plugins]\nfolders = 'x'", ["numtok.toml: folders in [plugins]", "a list of paths"]),
        ("[plugins]\nfolders = [1]", ["numtok.toml: folders in [plugins]", "a list of paths"]),
        ("[plugins]\nfolders = ['']", ["numtok.toml: folders in [plugins]", "a list of paths"]),
    ]:
        with case(text):
            with pytest.raises(UsageError) as caught:
                load(written(tmp_path, text))
            says(caught, *parts)
            assert "\n" not in str(caught.value)
            assert caught.value.exit_code == 2


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "numtok.toml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path)
