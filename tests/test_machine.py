"""The CPU cores and memory that a process may use."""

import os
from pathlib import Path

import pytest

from numtok import machine
from numtok.machine import cores, memory
from tests.cases import case

GIB = 1 << 30


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fake a machine of 64 cores and 256 GiB whose control groups are read from a folder."""
    monkeypatch.setattr(machine, "_GROUPS", tmp_path)
    monkeypatch.setattr(machine, "_OWN", tmp_path / "own")
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 256 * GIB // 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    return tmp_path


def test_all_of_a_machine_without_groups(groups: Path) -> None:
    assert (cores(), memory()) == (64, 256 * GIB)


def test_a_job_has_what_its_control_groups_leave_it(groups: Path) -> None:
    docker = "4:memory:/docker/a\n3:cpu,cpuacct:/docker/a\n"
    quota, period = "cpu.cfs_quota_us", "cpu.cfs_period_us"
    nothing: dict[str, str] = {}
    for name, own, memories, times, wanted in (
        ("no limit", "0::/job\n", {"job/memory.max": "max"}, {"cpu.max": "max 100000"}, None),
        (
            "of its own",
            "0::/job\n",
            {"job/memory.max": str(GIB)},
            {"job/cpu.max": "150000 100000"},
            (2, GIB),
        ),
        (
            "of one around it",
            "0::/slice/job\n",
            {"slice/memory.max": str(2 * GIB), "slice/job/memory.max": str(4 * GIB)},
            {"slice/cpu.max": "50000 100000"},
            (1, 2 * GIB),
        ),
        (
            "of a container",
            "0::/\n",
            {"memory.max": str(GIB)},
            {"cpu.max": "400000 100000"},
            (4, GIB),
        ),
        (
            "of a container, version 1",
            docker,
            {"memory/memory.limit_in_bytes": str(3 * GIB)},
            {f"cpu,cpuacct/{quota}": "300000", f"cpu,cpuacct/{period}": "100000"},
            (3, 3 * GIB),
        ),
        (
            "no limit, version 1",
            docker,
            {"memory/docker/a/memory.limit_in_bytes": "9223372036854771712"},
            {f"cpu,cpuacct/docker/a/{quota}": "-1", f"cpu,cpuacct/docker/a/{period}": "100000"},
            None,
        ),
        ("what is not understood", "0::/../job\n", {"memory.max": ""}, {"cpu.max": "?"}, None),
        ("no files", "0::/job\n", nothing, nothing, None),
    ):
        files = memories | times
        (groups / "own").write_text(own)
        for file, text in files.items():
            (groups / file).parent.mkdir(parents=True, exist_ok=True)
            (groups / file).write_text(f"{text}\n")
        with case(name):
            assert (cores(), memory()) == (wanted or (64, 256 * GIB))
        for file in files:
            (groups / file).unlink()


def test_no_more_than_a_process_is_bound_to(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 7, 8})
    assert cores() == 3


def test_ranks_on_one_machine_share_its_memory(
    groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert memory() == 64 * GIB
