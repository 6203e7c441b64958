"""The template by which rows of text were rendered from records, as artifacts store it.

:mod:`numtok.data.records.template` renders rows. This module does not, so commands that read texts
import it without the libraries that records need.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from numtok.errors import NumtokError
from numtok.row import TEXT
from numtok.store.access import StoreAccess
from numtok.store.artifact import DATA
from numtok.stored_json import StoredJson

Settings = TypeVar("Settings", bound=Any)

FORMAT = 1  # of template.json

#: Names of the notations in :mod:`numtok.data.records.notation`.
NotationName = Literal[
    "default",
    "thousands",
    "currency",
    "spaces",
    "integers",
    "comma",
    "comma-thousands",
    "comma-currency",
]


class RowTemplate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How records become texts.

    targets
        Fields to predict, in the order in which they are written.
    fields
        Fields that the text consists of, in order.
    notations
        Notation of the numbers in each target and in each field of numbers. Other fields have none.
    bare
        True if the text is a single field, written without its name.
    """

    format: int = FORMAT
    targets: list[str]
    fields: list[str]
    notations: dict[str, NotationName]
    bare: bool = False


TEMPLATE = StoredJson(name="template.json", kind=RowTemplate, newest=FORMAT)


def template_in(inputs: Sequence[str], store: StoreAccess) -> RowTemplate | None:
    """Return the template of rendered rows that are the only input; None for other inputs."""
    if len(inputs) != 1 or Path(inputs[0]).is_file():
        return None
    try:
        artifact = store.resolve(inputs[0], {DATA})
    except NumtokError:  # reading the input reports the error
        return None
    return artifact.read(TEMPLATE) if (artifact.path / TEMPLATE.name).is_file() else None


def of_texts(config: Settings) -> Settings:
    """Return the settings of a command that reads texts, in which the usual text field is the
    default, whether chosen or not."""
    return replace(config, text_field=None if config.text_field == TEXT else config.text_field)
