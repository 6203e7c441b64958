"""Trunks: plugins with labels, unsupported objectives, and stored settings."""

from pathlib import Path

import pytest

from numtok.errors import UsageError
from numtok.models.trunks.base import TRUNKS, stored_trunk
from numtok.plugins import add_plugin_folders
from numtok.registry import settings_of
from tests import fakemodels
from tests.cases import each
from tests.fakemodels import model
from tests.messages import Says
from tests.test_plugin_kinds import TRUNK

one_thread = fakemodels.one_thread


@pytest.fixture
def mine(plugins: Path) -> None:
    """Add a plugin trunk whose states see tokens up to their own, without a cache."""
    (plugins / "trunks").mkdir()
    (plugins / "trunks" / "mine.py").write_text(TRUNK)
    add_plugin_folders([plugins])


@each(
    ("objective", "parts"),
    [
        ("mlm", ("--objective mlm", "--preset mine", "--objective ar")),
        ("ar", ("--objective ar", "--preset mine", "such as nano")),
    ],
)
@pytest.mark.usefixtures("mine")
def test_what_a_trunk_cannot_learn_is_refused(
    objective: str, parts: tuple[str, ...], says: Says
) -> None:
    with says.raises(UsageError, *parts):
        model("p10", objective, size="mine")


@pytest.mark.usefixtures("mine")
def test_a_trunk_from_outside_says_labels() -> None:
    of = model("p10", "classify,causal=yes", size="mine,width=8", classes=["a", "b"])
    assert (of.settings.width, of.settings.trunk["name"]) == (8, "mine")


def test_settings_that_are_not_all_there_are_refused(says: Says) -> None:
    whole = settings_of(TRUNKS.build("mlp"))
    assert stored_trunk(whole) == TRUNKS.build("mlp")
    with says.raises(ValueError, "trunk mlp", "`width`"):
        stored_trunk({key: value for key, value in whole.items() if key != "width"})
    with says.raises(ValueError, "trunk mlp", "`int`"):
        stored_trunk(whole | {"width": "256"})
