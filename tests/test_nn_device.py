"""What a device can do at best, and the memory that was taken."""

import platform
import subprocess
import sys

import psutil
import torch

from numtok.nn import device
from numtok.nn.device import matmul_rate, peak_memory
from tests.fakemodels import CPU, one_thread

__all__ = ["one_thread"]


def test_the_rate_of_matrix_products_is_measured_once_and_draws_no_random_numbers() -> None:
    device._known.cache_clear()
    state = torch.get_rng_state()
    rates = [matmul_rate(CPU, bfloat16) for bfloat16 in (False, True) * 2]
    assert device._known.cache_info().misses == 2
    assert rates[:2] == rates[2:]
    assert min(rates) > 1e8
    assert torch.equal(torch.get_rng_state(), state)


def test_peak_memory_is_in_bytes_and_does_not_fall() -> None:
    taken = torch.ones(1 << 24)
    now, peak = psutil.Process().memory_info().rss, peak_memory(CPU)
    assert 0.9 * now < peak < psutil.virtual_memory().total  # systems count in steps
    del taken
    assert peak_memory(CPU) >= peak


def test_freed_memory_is_kept_for_the_next_step() -> None:
    """In a process of its own; another C library than glibc takes no notice."""
    program = """
import psutil, torch
from numtok.nn.device import keep_freed_memory
keep_freed_memory()
before = psutil.Process().memory_info().rss
torch.ones(1 << 26)
print(psutil.Process().memory_info().rss - before)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    kept = int(ran.stdout) > 200e6  # of 268
    assert kept == (platform.libc_ver()[0] == "glibc")
