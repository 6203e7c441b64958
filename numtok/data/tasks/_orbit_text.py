"""A planetary system as text, in the layout of the xVal paper (section 3.3)."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from numtok.data.tasks._nbody import PlanetarySystem

# Masses and eccentricities are scaled, so that all numbers are of a similar size.
MASS_UNIT, ECCENTRICITY_UNIT = 1e5, 20


def line(id: str, system: PlanetarySystem, positions: NDArray[np.float64], form: str) -> str:
    """A row as a line of JSON: ``form`` writes a number, positions are [points, planets, 2].

    Targets are the step size, and semi-major axis, eccentricity and mass of the first planet.
    """
    planets = zip(system.masses, system.axes, system.eccentricities, strict=True)
    numbers = [
        (form % (mass * MASS_UNIT), form % axis, form % (eccentricity * ECCENTRICITY_UNIT))
        for mass, axis, eccentricity in planets
    ]
    spans = {}
    text = "{'description': {"
    for k, written in enumerate(numbers):
        text += f"'planet{k}': {{"
        for name, number in zip("mae", written, strict=True):
            text += f"'{name}': "
            if k == 0:
                spans[name] = (len(text), len(text) + len(number))
            text += number + ("}, " if name == "e" else ", ")
    text += "'stepsize': "
    step = form % system.step
    spans["stepsize"] = (len(text), len(text) + len(step))
    rows = _rows(*positions.shape[:2], form) % tuple((positions.ravel() + 0.0).tolist())
    text += f"{step}}}, 'data': [{rows}]}}"
    targets = ",".join(
        f'"{name}":[[{spans[name][0]},{spans[name][1]}]]' for name in ("stepsize", "a", "e", "m")
    )
    return (
        f'{{"id":"{id}","text":"{text}","targets":{{{targets}}},'
        f'"group":{{"planets":{len(numbers)}}}}}\n'
    )


@cache
def _rows(points: int, planets: int, form: str) -> str:
    """``[[x, y], [x, y]], [[x, y], [x, y]]``, with the form in place of each number."""
    row = ", ".join([f"[{form}, {form}]"] * planets)
    return ", ".join([f"[{row}]"] * points)
