"""Where the time of training goes: a trace of some steps, and their costliest operations."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

from numtok import files
from numtok.training.device import wait

_COSTLIEST = 15


class Cost(NamedTuple):
    """Of one kind of operation in a step, without the operations inside it."""

    operation: str
    seconds: float  # of the device
    share: float
    calls: float


def traced(
    step: Callable[[int], object], steps: range, device: torch.device, path: Path
) -> list[Cost]:
    """Take these steps and write a Chrome trace of them to ``path``; the costliest operations."""
    activities, time = [ProfilerActivity.CPU], "self_cpu_time_total"
    if device.type == "cuda":
        activities, time = [*activities, ProfilerActivity.CUDA], "self_device_time_total"
    with profile(activities=activities) as profiler:
        for index in steps:
            step(index)
        wait(device)
    with TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        files.write_atomic(path, trace.read_bytes())
    events = sorted(profiler.key_averages(), key=lambda event: -getattr(event, time))
    whole = sum(getattr(event, time) for event in events)
    return [
        Cost(
            event.key,
            getattr(event, time) / len(steps) / 1e6,  # it counts in microseconds
            getattr(event, time) / max(whole, 1e-9),
            event.count / len(steps),
        )
        for event in events[:_COSTLIEST]
    ]
