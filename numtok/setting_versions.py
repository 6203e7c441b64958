"""Values of settings that are part of an artifact's version, or that distinguish experiments."""

from typing import Any

from numtok.declaration import settings_in


def of_version(settings: Any) -> dict[str, Any]:
    """Return the values that are part of an artifact's version, keyed by field.

    Defaults that depend on other settings must already be filled in.
    """
    return _counted(settings, "version", "experiment")


def of_experiment(settings: Any) -> dict[str, Any]:
    """Return the values of the settings that distinguish experiments, keyed by field."""
    return _counted(settings, "experiment")


def _counted(settings: Any, *counts: str) -> dict[str, Any]:
    values = {}
    for key, setting in settings_in(type(settings)).items():
        value = getattr(settings, key)
        if setting.counts in counts and not (setting.came_later and value == setting.default):
            values[key] = value
    return values
