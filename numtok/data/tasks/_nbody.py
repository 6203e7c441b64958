"""Planets around a star, integrated with REBOUND's IAS15.

IAS15 (Rein and Spiegel 2015) is of 15th order and chooses its own steps, so errors are those of
rounding. G = 1, the star has mass 1 and begins at rest in the origin: a circular orbit of radius 1
takes 2 pi. All is in one plane.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_double
from math import cos, sin, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.errors import needing

_INTERRUPTED = 6  # REB_STATUS_SIGINT
# Planets so near to each other have collided: no Earth around no Sun is as small. IAS15 would take
# ever smaller steps, without an end.
_COLLISION = 1e-6


class PlanetarySystem(NamedTuple):
    """Planets in the order in which they are written, and when they are looked at.

    Each has a mass, and of its first orbit the semi-major axis, the eccentricity and the true
    longitude (the angle from the x axis, which is that of the pericentre). ``points`` times are
    ``step`` apart, from 0 on.
    """

    masses: list[float]
    axes: list[float]
    eccentricities: list[float]
    longitudes: list[float]
    step: float
    points: int


def simulation(system: PlanetarySystem) -> Any:
    """The ``rebound.Simulation`` of a system at its start.

    The elements of each planet are relative to the centre of mass of the star and of the planets
    before it, as REBOUND takes them. Raises UsageError where REBOUND is not installed.
    """
    with needing("orbits", "rebound"):
        import rebound
    made = rebound.Simulation()
    made.integrator = "ias15"
    made.exit_min_distance = _COLLISION
    add, handle = rebound.clibrebound.reb_simulation_add, byref(made)
    body = rebound.Particle()  # copied when it is added
    body.m = total = 1.0
    add(handle, body)
    x = y = vx = vy = 0.0  # of the centre of mass
    orbits = zip(*system[:4], strict=True)
    for mass, axis, eccentricity, longitude in orbits:
        parameter = axis * (1 - eccentricity**2)
        distance = parameter / (1 + eccentricity * cos(longitude))
        speed = sqrt((total + mass) / parameter)
        body.m = mass
        body.x = x + distance * cos(longitude)
        body.y = y + distance * sin(longitude)
        body.vx = vx - speed * sin(longitude)
        body.vy = vy + speed * (eccentricity + cos(longitude))
        add(handle, body)
        share = mass / (total + mass)
        x, y = x + share * (body.x - x), y + share * (body.y - y)
        vx, vy = vx + share * (body.vx - vx), vy + share * (body.vy - vy)
        total += mass
    return made


def positions(system: PlanetarySystem) -> NDArray[np.float64] | None:
    """x and y of every planet at every time [points, planets, 2]; None where planets collide, and
    where IAS15 complains or comes to what is not finite.

    Raises UsageError where REBOUND is not installed.
    """
    made = simulation(system)
    from rebound import clibrebound

    integrate, handle, status = clibrebound.reb_simulation_integrate, byref(made), 0
    planets = [made.particles[k] for k in range(1, len(system.masses) + 1)]
    found = [coordinate for planet in planets for coordinate in (planet.x, planet.y)]
    with _own_interrupts():
        for k in range(1, system.points):
            # As made.integrate does, which takes longer to look for messages.
            if status := integrate(handle, c_double(k * system.step)):
                break
            for planet in planets:
                found += planet.x, planet.y
    if status == _INTERRUPTED:
        raise KeyboardInterrupt
    if status or made.messages:  # such as that its iterations do not converge
        return None
    whole = np.array(found).reshape(system.points, len(planets), 2)
    return whole if np.isfinite(whole).all() else None


def come_close(system: PlanetarySystem, found: NDArray[np.float64]) -> bool:
    """Whether two planets are within their mutual Hill radius at any of the times of
    ``found`` [times, planets, 2]."""
    for k, (mass, axis) in enumerate(zip(system.masses, system.axes, strict=True)):
        for other in range(k):
            radius = ((mass + system.masses[other]) / 3) ** (1 / 3)
            radius *= (axis + system.axes[other]) / 2
            apart = found[:, k] - found[:, other]
            if np.einsum("td,td->t", apart, apart).min() < radius**2:
                return True
    return False


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Interrupts wait, and are then again what they were before.

    Each integration installs a handler of SIGINT and leaves it there: afterwards an interrupt
    would go unnoticed, and a worker that ignores them would end by one.
    """
    is_main = threading.current_thread() is threading.main_thread()  # which alone can set one
    handler = signal.getsignal(signal.SIGINT)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if is_main and handler is not None:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
