"""How often what comes over a network is asked for, and how long it is waited for."""

from collections.abc import Iterator

ATTEMPTS = 4
PAUSE = 1.0  # seconds before the second attempt, doubled before each other
PATIENCE = 30.0  # seconds without a byte


def pauses(attempts: int) -> Iterator[float]:
    """The seconds before each of so many attempts.

    >>> list(pauses(4))
    [0.0, 1.0, 2.0, 4.0]
    """
    return (PAUSE * 2 ** (attempt - 1) if attempt else 0.0 for attempt in range(attempts))
