"""The settings of a trunk as versions and files hold them.

Three trunks were there before trunks had names. Versions, and files of then, hold their settings
without name and revision, so that they are what they were.
"""

from typing import get_type_hints

import msgspec

from numtok.class_settings import settings_fields
from numtok.models.trunks.base import TRUNKS, Trunk
from numtok.registry import Settings

#: Two of them, by the key that each had in ``model.json`` then, and the third.
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
    """The inverse, of what can only be the trunk ``name`` where it says none."""
    return {"name": name, "revision": _FIRST, **settings}


def stored_trunk(settings: Settings) -> Trunk:
    """The trunk that a file says.

    ValueError for settings that are not all there, as no default may stand for one that was lost,
    for others, and for values of other types; UsageError as ``Registry.from_settings``.
    """
    trunk = TRUNKS.from_settings(settings)
    hints = get_type_hints(type(trunk))
    known = [(key, hints[key]) for key in settings_fields(type(trunk))]
    own = {key: value for key, value in settings.items() if key not in ("name", "revision")}
    try:
        msgspec.convert(own, msgspec.defstruct("Trunk", known, forbid_unknown_fields=True))
    except msgspec.ValidationError as error:
        raise ValueError(f"the trunk {settings['name']}: {error}") from None
    return trunk
