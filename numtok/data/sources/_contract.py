"""Checks that a source fulfills its contract, run by ``numtok check source NAME``.

Nothing is downloaded; only the declarations of a source are checked.
"""

import json
from itertools import islice

from numtok.contracts import check_declared, check_settings, checks_of, expect, expect_kind, require
from numtok.data.sources.base import SOURCES, FieldSource, Origin, Source, TableSource, TextSource
from numtok.errors import UsageError

_KINDS = (TableSource, TextSource, FieldSource)
_MOST = 100  # maximum number of origins to check


def check_declarations(source: Source, seed: int) -> None:
    """Check the declarations, and that the source provides tables, texts or a field."""
    name = "declarations"
    check_declared(source, name, revision=int)
    expect_kind(source, "__class__", source, *_KINDS)
    check_settings(SOURCES, source, name)


def check_origins(source: Source, seed: int) -> None:
    """Check the origins of tables and texts: distinct names, keys, files, and JSON members.

    Sources that request the names of their data sets from a server are skipped.
    """
    if isinstance(source, FieldSource):
        return
    if not isinstance(source, TableSource | TextSource) or source.asks_for_names:
        return
    name, declared = "origins", islice(source.origins(), _MOST)
    origins = [expect_kind(source, name, origin, Origin) for origin in declared]
    require(source, name, origins, "got none, expected at least one")
    for origin in origins:
        filled = origin.name and origin.key and origin.files
        require(source, name, filled, f"got {origin}, expected a name, a key and files")
        for written in (origin.options, origin.key, origin.files):
            again = json.loads(json.dumps(dict(written)))
            expect(source, name, "written and read again", again, dict(written))
    expect(source, name, "distinct names", len({origin.name for origin in origins}), len(origins))


def check_terms(source: Source, seed: int) -> None:
    """Check that texts and fields have a license and an attribution."""
    if isinstance(source, TableSource):
        return
    assert isinstance(source, TextSource | FieldSource)
    who = source.attribution
    for member, text in (
        ("licence", source.licence),
        ("attribution", who("2019-2021") if callable(who) else who),
    ):
        require(source, "terms", expect_kind(source, member, text, str), f"{member}: got ''")


def check_texts(source: Source, seed: int) -> None:
    """Check how a source of texts assigns splits and treats bad rows."""
    if isinstance(source, TextSource):
        expect_kind(source, "shares", source.shares, str, type(None))
        expect_kind(source, "skips", source.skips, bool)


def check_field(source: Source, seed: int) -> None:
    """Check the name and the key of a field, and the local files that it reads."""
    if not isinstance(source, FieldSource):
        return
    require(source, "field", expect_kind(source, "name", source.name, str), "name: got ''")
    key = dict(source.key)
    expect(source, "field", "key, written and read again", json.loads(json.dumps(key)), key)
    expect_kind(source, "drops", source.drops, bool)
    try:
        files_by_location = source.files()
    except UsageError:  # the location is not on this machine
        return
    for location, files in files_by_location.items():
        exist = all(path.is_file() for path in files)
        require(source, "field", exist, f"files of {location}: got {files}, expected files")


CHECKS = checks_of(__name__)
