"""Console blocks of pages: the runner, and every page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.site import console, warm
from tests.imports import ROOT
from tests.test_pages import written_pages

PAGES = console.pages()
#: Python pages, which tests/library/test_guide.py runs with further checks.
ELSEWHERE = ("python-model.md", "python-commands.md", "text-regressor.md")
RUN = [page for page in PAGES if page.name not in ELSEWHERE]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("served")
    with warm.serving(folder):
        yield folder


@pytest.mark.integration
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_a_page_does_what_it_shows(page: Path, tmp_path: Path, served: Path) -> None:
    differences, _ = console.run(page, tmp_path, served, slow=False)
    assert not differences, "`just docs-update` rewrites outputs"


SLOW = [page for page in RUN if "<!-- slow -->" in page.read_text("utf-8")]


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW, ids=name_of)
def test_a_slow_page_does_what_it_shows(page: Path, tmp_path: Path, served: Path) -> None:
    differences, _ = console.run(page, tmp_path, served, slow=True)
    assert not differences, "`just docs-update` rewrites outputs"


def test_shell_blocks_run_or_say_why_not() -> None:
    silent = [
        f"{name_of(page)}: {block.text}"
        for page in written_pages()
        for block in console.blocks(page.read_text("utf-8"))
        if block.language in ("sh", "bash", "shell", "console")
        and not (console.is_run(block) and page in RUN)
        and not (block.mark in ("not run", "ci") and block.value)
    ]
    assert not silent


# --- the runner --------------------------------------------------------------------------------

PAGE = """# Title

<!-- setup
echo hidden > file.txt
-->

```console
$ cat file.txt
hidden
$ for x in 1 2; do
>     echo $x
> done
wrong
$ false
exit code 1
```

<!-- file: sub/config.toml -->
```toml
a = 1
```

```python
from pathlib import Path

assert Path("sub/config.toml").read_text() == "a = 1\\n"
```

<!-- not run: it needs a GPU -->
```console
$ exit 1
```

```sh
cat file.txt
```

<!-- slow -->
```console
$ sleep 1000
```
"""


@pytest.mark.integration
def test_a_page_is_run_and_its_output_rewritten(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    (tmp_path / "folder").mkdir()
    differences, text = console.run(page, tmp_path / "folder", tmp_path, slow=False)
    assert [one.expected for one in differences] == ["wrong\n"]
    assert differences[0].found == "1\n2\n"
    assert text == PAGE.replace("wrong\n", "1\n2\n")


@pytest.mark.integration
def test_a_command_without_output_that_fails_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh\ntrue\nfalse\ntrue\n```\n")
    (tmp_path / "folder").mkdir()
    with pytest.raises(RuntimeError, match="exit code 1"):
        console.run(page, tmp_path / "folder", tmp_path, slow=False)


@pytest.mark.integration
def test_numtok_on_pages_passes_its_files_and_exit_code_on(tmp_path: Path, served: Path) -> None:
    shell = console.Shell(tmp_path, served)
    try:
        assert shell.run("numtok explain 1 --scheme p10 | wc -l").strip().isdigit()
        assert "exit code 2" in shell.run("numtok no-command")
        shell.check('cp -r "$SAMPLES" artifacts; numtok show rooms-xval-nano > /dev/null')
    finally:
        shell.close()


def test_what_differs_between_runs_is_masked() -> None:
    same = [
        ("rooms@6b32ecdb62297483\n", "rooms@0123456789abcdef\n"),
        ("time  0.18 s\n", "time  21 min\n"),
        ("r2  0.988\n", "r2  0.9871\n"),
        ("first\n...\nlast\n", "first\n1\n2\nlast\n"),
        ("a    b\n──────\n", "a b\n───\n"),
    ]
    other = [("3 rows\n", "4 rows\n"), ("r2 0.9\n", "r2 0.5\n"), ("a\n...\nb\n", "a\nc\n")]
    assert all(console.same(*pair) for pair in same)
    assert not any(console.same(*pair) for pair in other)


def test_output_is_shortened_as_on_the_page() -> None:
    assert console.elided("1\n...\n9\n", "1\n2\n3\n8\n") == "1\n...\n8\n"
