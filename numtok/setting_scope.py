"""Rejection of settings that do not apply, such as settings of tables for texts."""

from collections.abc import Callable, Collection
from typing import Any

from numtok.declaration import settings_in
from numtok.errors import meaningless

#: Rejects options that do not apply to the data, which are ``texts`` or ``tables``; the second
#: argument describes the data in a message.
CheckApplies = Callable[[str, str], None]


def no_options(of: str, description: str) -> None:
    """Accept all settings. This is the default :data:`CheckApplies` of stages; the command line
    and the Python functions pass their own."""


def settings_check(settings: Any) -> CheckApplies:
    """Return a check that rejects settings for other data, unless they are at their defaults."""

    def check(of: str, description: str) -> None:
        declared = settings_in(type(settings)).items()
        refuse(settings, {key for key, one in declared if one.of not in (None, of)}, description)

    return check


def refuse(settings: Any, names: Collection[str], subject: str) -> None:
    """Raise UsageError for the first named setting that is not at its default.

    ``subject`` names what the setting does not apply to, such as ``encoded data``.
    """
    for key, declared in settings_in(type(settings)).items():
        if key in names and getattr(settings, key) != declared.default:
            raise meaningless(declared.flag, subject)
