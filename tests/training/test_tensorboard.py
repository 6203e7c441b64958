"""``--log tensorboard:DIR``: the event file has every logged value once."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from numtok.errors import StoreError, UsageError
from numtok.settings.train import Config
from numtok.stages import train
from numtok.training.log import LOG_FILE, check_tensorboard, event_file
from tests.stages.test_eval import TINY, World, quiet

pytestmark = pytest.mark.integration


def read_back(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Read the scalars of a run: (step, value) pairs by tag."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def test_the_event_file_has_the_figures_of_the_log(tmp_path: Path) -> None:
    world = World(tmp_path)
    encoded = world.encoded("xval")
    config = Config(encoded.ref, preset=TINY, steps=4, log=f"tensorboard:{tmp_path / 'runs'}")
    model = train.run(config, world.store, quiet).artifact
    lines = [json.loads(line) for line in (model.path / LOG_FILE).read_text().splitlines()]
    scalars = read_back(tmp_path / "runs" / model.ref)
    assert {"train/loss"} <= set(scalars)
    for line in lines:
        for name in set(line) - {"step", "tokens", "split"}:
            if line[name] is not None:
                values = dict(scalars[f"{line['split']}/{name}"])
                assert values[line["step"]] == pytest.approx(line[name], rel=1e-6)
    plain = train.run(Config(encoded.ref, preset=TINY, steps=4), world.store, quiet)
    assert (plain.made, plain.artifact.ref) == (False, model.ref)


class Draft:
    """A draft with only the attribute that ``event_file`` reads."""

    ref = "sums@0123456789abcdef"


def test_a_run_that_goes_on_hides_what_it_learns_again(tmp_path: Path) -> None:
    draft: Any = Draft()
    for first, steps in ((0, (1, 2, 3)), (2, (3, 4))):
        with event_file(f"tensorboard:{tmp_path}", draft, first) as watch:
            for step in steps:
                watch({"step": step, "tokens": 9, "split": "train", "loss": 10.0 * first + step})
    assert read_back(tmp_path / Draft.ref) == {
        "train/loss": [(1, 1.0), (2, 2.0), (3, 23.0), (4, 24.0)]
    }


def test_what_cannot_be_logged_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    draft: Any = Draft()
    with (
        pytest.raises(StoreError, match="file"),
        event_file(f"tensorboard:{tmp_path / 'file'}", draft, 0),
    ):
        pass
    for log in ("runs", "tensorboard:", "wandb:x"):
        with pytest.raises(UsageError, match="tensorboard:DIR"):
            Config("data", log=log)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(UsageError, match="pip install tensorboard"):
        check_tensorboard()
