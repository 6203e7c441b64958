"""What every source must do, as checks that run anywhere: ``numtok check source NAME``.

Nothing is brought: what a source says of the data before it has them is compared with its contract.
"""

import json
from itertools import islice

from numtok.contracts import check_declared, check_settings, checks_of, expect, expect_kind, require
from numtok.data.sources.base import SOURCES, FieldSource, Origin, Source, TableSource, TextSource
from numtok.errors import UsageError

_KINDS = (TableSource, TextSource, FieldSource)
_MOST = 100  # origins that are looked at


def check_declarations(source: Source, seed: int) -> None:
    """What is declared is there, and it is a source of tables, texts or a field."""
    name = "declarations"
    check_declared(source, name, revision=int)
    expect_kind(source, "__class__", source, *_KINDS)
    check_settings(SOURCES, source, name)


def check_origins(source: Source, seed: int) -> None:
    """Of tables and texts: what each data set is called, what it is known by, and its files; all
    of it can be written down, and no two have one name. One that asks a server is left alone."""
    if isinstance(source, FieldSource):
        return
    if not isinstance(source, TableSource | TextSource) or source.asks_for_names:
        return
    name, found = "origins", islice(source.origins(), _MOST)
    origins = [expect_kind(source, name, one, Origin) for one in found]
    require(source, name, origins, "got none, expected one at least")
    for origin in origins:
        filled = origin.name and origin.key and origin.files
        require(source, name, filled, f"got {origin}, expected a name, a key and files")
        for written in (origin.options, origin.key, origin.files):
            again = json.loads(json.dumps(dict(written)))
            expect(source, name, "written and read again", again, dict(written))
    expect(source, name, "distinct names", len({one.name for one in origins}), len(origins))


def check_terms(source: Source, seed: int) -> None:
    """Of texts and fields: the licence, and who is to be named."""
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
    """Of texts: how rows come into splits, and what happens to those that cannot be used."""
    if isinstance(source, TextSource):
        expect_kind(source, "shares", source.shares, str, type(None))
        expect_kind(source, "skips", source.skips, bool)


def check_field(source: Source, seed: int) -> None:
    """Of a field: what it is called and known by, and which files of this machine are read."""
    if not isinstance(source, FieldSource):
        return
    require(source, "field", expect_kind(source, "name", source.name, str), "name: got ''")
    key = dict(source.key)
    expect(source, "field", "key, written and read again", json.loads(json.dumps(key)), key)
    expect_kind(source, "drops", source.drops, bool)
    try:
        found = source.files()
    except UsageError:  # the place is not on this machine
        return
    for place, files in found.items():
        there = all(path.is_file() for path in files)
        require(source, "field", there, f"files of {place}: got {files}, expected files")


CHECKS = checks_of(__name__)
