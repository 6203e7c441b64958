"""Commands, options and names of Python on pages exist, whether a block is run or not."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import numtok
from docs.site.commands import commands
from docs.site.console import Block, blocks
from docs.site.console import commands as console_commands
from numtok.registry import folder_registry
from tests.test_pages import written_pages

SHELL = ("sh", "console")
#: A call of numtok, up to the end of the command; nested commands are cut out beforehand.
CALL = re.compile(r"(?<![\w./-])numtok (.*?)(?=\s*(?:[|;)]|&&|$))", re.M)
GLOBAL = {"--store", "--quiet", "-q", "--version", "--help", "-h", "--show-completion"}
WITH_KINDS = {"gen": "tasks", "fetch": "sources", "figure": "figures", "probe": "probes"}


def shell_of(block: Block) -> str:
    """Return the commands of a shell block, without their output."""
    if block.language == "sh":
        return block.text
    return "\n".join(command for command, _ in console_commands(block.text))


def calls(text: str) -> Iterator[list[str]]:
    """Yield the words of each call of numtok in a shell block."""
    text = re.sub(r"\\\n\s*", " ", text)
    text = re.sub(r"(^|\s)#.*$", "", text, flags=re.M)
    inner = re.compile(r"\$\(([^()]*)\)")
    while found := inner.search(text):
        text = f"{text[: found.start()]}REF{text[found.end() :]}\n{found[1]}"
    for call in CALL.finditer(re.sub(r"'[^'\n]*'|\"[^\"\n]*\"", "QUOTED", text)):
        words = call[1].split()
        while words and words[0] in GLOBAL:
            words = words[1:]
        yield words


def wrong_in(words: list[str]) -> Iterator[str]:
    """Yield the names in a call that do not exist."""
    if not words or words[0] in ("COMMAND", "help"):
        return
    name, *rest = words
    if name not in commands():
        yield f"command {name}"
        return
    command = commands()[name]
    if folder := WITH_KINDS.get(name):
        kind = next((word for word in rest if not word.startswith("-")), "")
        if kind.partition(",")[0].partition(":")[0] not in folder_registry(folder):
            if kind.islower():
                yield f"{name} {kind}"
            return
        command = commands([name, kind])[name]
    known = {option for param in command.params for option in [*param.opts, *param.secondary_opts]}
    for word in rest:
        option = word.partition("=")[0]
        if re.match(r"--?[a-z]", option) and option not in known | GLOBAL:
            yield f"{name} {option}"


@pytest.mark.integration
def test_commands_and_options_on_pages_exist() -> None:
    wrong, count = [], 0
    for page in written_pages():
        for block in blocks(page.read_text("utf-8")):
            if block.language in SHELL and block.mark != "command":
                for words in calls(shell_of(block)):
                    count += 1
                    wrong += [f"{page.name}: {problem}" for problem in wrong_in(words)]
    assert count > 150
    assert not wrong


def test_names_of_the_library_on_pages_exist() -> None:
    wrong = [
        f"{page.name}: numtok.{name}"
        for page in written_pages()
        for name in re.findall(r"(?<![\w/`.-])numtok\.([a-z_A-Z]\w*)\(", page.read_text("utf-8"))
        if not hasattr(numtok, name)
    ]
    assert not wrong


def test_wrong_names_are_found(tmp_path: Path) -> None:
    text = "ref=$(numtok encode --sheme xval DATA)\nnumtok trian $ref | head\nnumtok gen room\n"
    found = [problem for words in calls(text) for problem in wrong_in(words)]
    assert sorted(found) == ["command trian", "encode --sheme", "gen room"]
