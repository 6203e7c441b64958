"""The settings of a trunk as versions and files hold them.

Three trunks were there before trunks had names. Their settings are kept without name and revision,
in ``model.json`` under a key each, so that versions and bytes are what they were.
"""

from collections.abc import Mapping
from typing import get_type_hints

import msgspec

from numtok.class_settings import settings_fields
from numtok.models.trunks.base import TRUNKS
from numtok.registry import Settings

#: The trunks that were there before trunks had names, by the key of ``model.json`` that they have.
KEYS = {"shape": "transformer", "bigru": "bigru"}
OF_TABLES = "mlp"
_FIRST = 1  # their revision then


def unnamed(settings: Settings) -> Settings:
    """Expanded settings (``registry.settings_of``) without name and revision, where they are those
    of a trunk that had neither."""
    if settings["name"] not in (*KEYS.values(), OF_TABLES) or settings["revision"] != _FIRST:
        return settings
    return {key: value for key, value in settings.items() if key not in ("name", "revision")}


def named(settings: Settings, name: str) -> Settings:
    """The inverse, of what can only be the trunk ``name`` where it says none.

    ValueError for settings that are not all there, as no default may stand for one that was lost,
    for others, and for values of other types.
    """
    whole: Settings = {"name": name, "revision": _FIRST, **settings}
    if whole["name"] == name:
        hints = get_type_hints(TRUNKS[name])
        known = {key: hints[key] for key in settings_fields(TRUNKS[name])}
        kind = msgspec.defstruct("Trunk", [*known.items()], forbid_unknown_fields=True)
        own = {key: value for key, value in whole.items() if key not in ("name", "revision")}
        try:
            msgspec.convert(own, kind)
        except msgspec.ValidationError as error:
            raise ValueError(f"the trunk {name}: {error}") from None
    return whole


def in_file(settings: Settings) -> dict[str, Settings]:
    """The settings by their key in ``model.json``."""
    found = (key for key, name in KEYS.items() if name == settings["name"])
    return {next(found, "trunk"): unnamed(settings)}


def from_file(found: Mapping[str, Settings | None]) -> Settings:
    """The inverse; ValueError unless there is one trunk."""
    there = {key: settings for key, settings in found.items() if settings is not None}
    if len(there) != 1:
        raise ValueError(f"there is one trunk, not {len(there)}")
    [(key, settings)] = there.items()
    return named(settings, KEYS[key]) if key in KEYS else settings
