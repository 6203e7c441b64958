"""Planets around a star, integrated with REBOUND's IAS15.

IAS15 (Rein and Spiegel 2015) is of 15th order and adapts its steps, so only rounding errors remain.
G = 1, and the star has mass 1 and starts at rest at the origin, so a circular orbit of radius 1
takes 2 pi. All bodies move in the same plane.
"""

from ctypes import byref, c_double
from math import cos, sin, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.errors import needing
from numtok.interrupts import BlockedInterrupts

_INTERRUPTED = 6  # REB_STATUS_SIGINT
# Planets closer than this have collided: even Earth-sized ones are larger. Otherwise IAS15 would
# take ever smaller steps and never end.
_COLLISION = 1e-6


class PlanetarySystem(NamedTuple):
    """Planets in the order of the text, and the times at which they are observed.

    Each planet has a mass and an initial orbit, given by the semi-major axis, the eccentricity and
    the true longitude (the angle from the x axis, on which the pericenter lies). There are
    ``points`` times, ``step`` apart, starting at 0.
    """

    masses: list[float]
    axes: list[float]
    eccentricities: list[float]
    longitudes: list[float]
    step: float
    points: int


def simulation(system: PlanetarySystem) -> Any:
    """Return the ``rebound.Simulation`` of a system in its initial state.

    The elements of each planet are relative to the center of mass of the star and the preceding
    planets, as in REBOUND. Raises UsageError if REBOUND is not installed.
    """
    with needing("orbits", "rebound"):
        import rebound
    result = rebound.Simulation()
    result.integrator = "ias15"
    result.exit_min_distance = _COLLISION
    add, handle = rebound.clibrebound.reb_simulation_add, byref(result)
    body = rebound.Particle()  # copied when it is added
    body.m = total = 1.0
    add(handle, body)
    x = y = vx = vy = 0.0  # of the center of mass
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
    return result


def positions(system: PlanetarySystem) -> NDArray[np.float64] | None:
    """Return x and y of every planet at every time [points, planets, 2].

    Returns None if planets collide, if IAS15 reports a problem, or if a result is not finite.
    Raises UsageError if REBOUND is not installed.
    """
    simulated = simulation(system)
    from rebound import clibrebound

    integrate, handle, status = clibrebound.reb_simulation_integrate, byref(simulated), 0
    planets = [simulated.particles[k] for k in range(1, len(system.masses) + 1)]
    coordinates = [coordinate for planet in planets for coordinate in (planet.x, planet.y)]
    # Each integration installs its own SIGINT handler and does not remove it: later interrupts
    # would be lost, and a worker that ignores interrupts would be ended by one.
    with BlockedInterrupts():
        for k in range(1, system.points):
            # Like simulated.integrate, which is slower because it checks for messages.
            if status := integrate(handle, c_double(k * system.step)):
                break
            for planet in planets:
                coordinates += planet.x, planet.y
    if status == _INTERRUPTED:
        raise KeyboardInterrupt
    if status or simulated.messages:  # such as that its iterations do not converge
        return None
    whole = np.array(coordinates).reshape(system.points, len(planets), 2)
    return whole if np.isfinite(whole).all() else None


def come_close(system: PlanetarySystem, path: NDArray[np.float64]) -> bool:
    """Return whether two planets are within their mutual Hill radius at any time in ``path``.

    ``path`` contains the positions [times, planets, 2].
    """
    for k, (mass, axis) in enumerate(zip(system.masses, system.axes, strict=True)):
        for other in range(k):
            radius = ((mass + system.masses[other]) / 3) ** (1 / 3)
            radius *= (axis + system.axes[other]) / 2
            apart = path[:, k] - path[:, other]
            if np.einsum("td,td->t", apart, apart).min() < radius**2:
                return True
    return False
