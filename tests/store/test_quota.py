"""How much memory and disk there is to use."""

import pytest

from numtok.store.quota import memory


def test_ranks_on_one_machine_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    alone = memory()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert memory() == alone // 4
