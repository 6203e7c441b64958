"""Messages of numtok: checks of their parts, and a file with all of them to read.

A test checks what a message must contain::

    def test_a_rate_below_zero(says: Says) -> None:
        with says.raises(UsageError, "--lr", "-1.0", "at least 0"):
            run(config(lr=-1.0))

``just messages`` also writes every whole message to ``tests/messages.json``, by test. No test
compares that file: its diff helps when messages are rewritten. Names in a registry are written as
``every scheme``, so that a new file changes no message.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, final

import pytest

from numtok.plugin_checks import kinds
from numtok.plugins import registries

ROOT = Path(__file__).resolve().parents[1]
SNAPSHOT = ROOT / "tests/messages.json"
_SAID = pytest.StashKey[dict[str, list[str]]]()  # messages by test id, in order


@cache
def _listings() -> dict[str, str]:
    """Return how messages list each registry, with its kind, without importing anything."""
    found = {", ".join(kinds()): "kind"}
    for folder, package in registries().items():
        files = (ROOT / Path(*package.split("."))).glob("[a-z]*.py")
        names = sorted(file.stem.replace("_", "-") for file in files if file.stem != "base")
        found[", ".join(names)] = folder.removesuffix("s").replace("_", " ")
    return found


@final
class Says:
    """The messages of one test."""

    def __init__(self, folders: dict[str, str]) -> None:
        self.texts: list[str] = []
        self._folders = folders  # with their placeholders

    def __call__(self, message: object, *parts: str) -> None:
        """Check that ``message``, a text or what ``pytest.raises`` caught, contains the parts."""
        if isinstance(message, pytest.ExceptionInfo):
            message = message.value
        text = str(message).encode("utf-8", "backslashreplace").decode()
        for part in parts:
            assert part in text
        for folder, sign in self._folders.items():
            text = text.replace(folder, sign)
        for names, kind in _listings().items():
            text = text.replace(names, f"every {kind}")
        text = re.sub(r"(?<=[@/])[0-9a-f]{16}\b", "VERSION", text)  # digests of data and settings
        # The numbers of fixture folders depend on the order in which they are made.
        self.texts.append(re.sub(r"(?<=BASE/)([\w-]*?)\d+\b", r"\1", text))

    @contextmanager
    def raises(
        self, kind: type[Exception] | tuple[type[Exception], ...], *parts: str
    ) -> Iterator[None]:
        """Expect an error in the block, whose message is one line and contains the parts."""
        with pytest.raises(kind) as caught:
            yield
        assert "\n" not in str(caught.value)
        self(caught, *parts)

    def refused(self, ran: Any, code: int, *parts: str) -> None:
        """Check that a command ended with this exit code and one line on stderr with the parts."""
        assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)
        assert ran.err.startswith("numtok: ")
        self(ran.err, *parts)


@pytest.fixture
def says(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Says]:
    """Check parts of messages, and keep the whole texts for ``--write-messages``."""
    base = tmp_path_factory.getbasetemp()
    says = Says({str(tmp_path): "TMP", str(base): "BASE", str(ROOT): "ROOT"})
    yield says
    request.config.stash[_SAID][request.node.nodeid] = says.texts


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-messages", action="store_true", help=f"write {SNAPSHOT.name}")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SAID] = {}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect the messages of an xdist worker that has finished."""
    node.config.stash[_SAID].update(getattr(node, "workeroutput", {}).get("said", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["said"] = config.stash[_SAID]
    elif config.getoption("write_messages"):
        text = json.dumps(config.stash[_SAID], indent=1, sort_keys=True, ensure_ascii=False)
        SNAPSHOT.write_text(text + "\n", "utf-8")
