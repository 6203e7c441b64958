"""Malformed and malicious inputs."""

import gzip
import io
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from tests.forks import Run
from tests.trust.chain import MLP, NANO
from tests.trust.promise import Promise
from tests.trust.world import World, check_told, opened

_SECONDS, _MEBIBYTES = 20.0, 2048.0
_PIECES = (
    *(
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"\n\n",
        b"\\",
        b'"',
        b",",
        b"{",
        b"]",
        b"\t",
    ),
    *(b"1e999", b"-1e-999", b"NaN", b"Infinity", b"null", b"true", b"-0", b"1" * 5000, b"0x1F"),
    *(b"\\ud800", b"\\u0000", "\u2028\u202e\U0001f600".encode(), b"[NUM]", b"\x1b[31m", b"%s{}"),
    *(b"[" * 2000, b'{"a":' * 2000, b'"text": "x", ', b'"text": 5, ', b" " * 100_000, b"'"),
    *(b"../../../../etc/passwd", b"nan", b"inf", b"id", b"split", b"targets", b"test", b"=", b"#"),
)
_TOML = b'[gen]\ntask = "arithmetic"\noperands = 2\nrows = 50\n[encode]\nscheme = ["p10", "xval"]\n'
_TOML += b'[train]\npreset = "nano,layers=1,width=16,heads=2"\nsteps = [1, 2]\nseed = [0, 1]\n'
_PHASES = (
    b"restart = true\n[[phase]]\nrows = [{ weight = 0.5 }]\n[[phase]]\nlength = 2\nrows = [{}]\n"
)
_CONFIG = b'store = "artifacts"\n[encode]\nscheme = "xval"\n[train]\nsteps = 3\nlr = 1e-3\n'
_TRAIN = ("train", "arithmetic-xval", *NANO, "--name", "new")
#: The commands that read each input. A case may append a wrong extension to the name.
_COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "x.jsonl": (
        ("encode", "--scheme", "p1000", "{}"),
        ("encode", "--scheme", "digits", "--on-error", "skip", "{}"),
        ("encode", "--scheme", "xval", "--text-field", "group.half", "--on-error", "skip", "{}"),
        ("profile", "{}"),
        ("profile", "--on-error", "skip", "{}"),
        ("race", "--dry-run", "{}"),
        ("table", "{}", "--target", "label"),
        ("predict", "value", "{}"),
    ),
    "x.csv": (
        ("table", "{}", "--target", "y", "--name", "new"),
        ("race", "{}", "--target", "y", "--dry-run"),
        ("profile", "{}"),
        ("encode", "--scheme", "p10", "{}"),
        ("predict", "fitted", "{}"),
    ),
    "x.parquet": (
        ("encode", "--scheme", "p10", "{}"),
        ("encode", "--scheme", "p10", "--on-error", "skip", "{}"),
        ("table", "{}", "--target", "y", "--name", "new"),
    ),
    "x.toml": (("sweep", "{}", "--dry-run"), (*_TRAIN, "--curriculum", "{}")),
    "phases.toml": ((*_TRAIN, "--curriculum", "{}"),),
    "numtok.toml": (("encode", "arithmetic"), ("ls",), _TRAIN),
    "specs": (
        ("encode", "arithmetic", "--scheme", "{}"),
        ("encode", "arithmetic", "--scheme", "p10", "--numbers", "{}"),
        ("encode", "arithmetic", "--scheme", "xval", "--normalize", "{}"),
        ("encode", "arithmetic", "--scheme", "p10", "--text-tokenizer", "{}"),
        ("encode", "arithmetic", "--scheme", "p10", "--split", "{}"),
        (*_TRAIN, "--preset", "{}"),
        (*_TRAIN, "--objective", "{}"),
        (*_TRAIN, "--embedder", "{}"),
        (*_TRAIN, "--lr", "{}"),
        ("train", "rows", *MLP, "--head", "{}", "--name", "new"),
        ("explain", "{}"),
        ("explain", "--scheme", "{}", "1.5"),
        ("gen", "{}", "--rows", "5"),
        ("show", "{}"),
    ),
}
_SPECS = (
    *(b"xval", b"p1000", b"bpe:300", b"numvalue", b"eu,unicode", b"groups=space+indian", b"words"),
    *(
        b"signed-log",
        b"scale:5,per=slot",
        b"ar:answer",
        b"mlm:numbers,rate=0.5",
        b"mdn:2",
        b"-6.02e23",
    ),
    *(b"nano,layers=1,width=16,heads=2", b"riemann:16", b"arithmetic,operands=2", b"1e-3"),
    *(b"test=0.3,seed=2", b"scaled", b"value@0123456789abcdef", b"model/value", b"fourier"),
)


def hostile(world: World, random: Random) -> int:
    """Change a valid input at random, and pass it to a command that reads it."""
    kind = random.choice(list(_COMMANDS))
    content = _changed(random, random.choice(_good(world.whole.before)[kind]))
    words = random.choice(_COMMANDS[kind])
    with world.copy(world.whole.before) as copy:
        given = kind
        if kind == "specs":
            given = content.replace(b"\x00", b"").decode("utf-8", "surrogateescape")[:10_000]
        else:
            if random.random() < 0.1 and kind != "numtok.toml":
                given += random.choice([".gz", ".zst", ".json", ".txt", ".parquet", " \u202e"])
                content = gzip.compress(content, 1) if given.endswith(".gz") else content
            (copy / given).write_bytes(content)
        command = tuple(given if word == "{}" else word for word in words)
        (ended,) = world.forks.together(Run(str(copy), command, limit=_SECONDS))
        check_told(ended, (0, 1, 2, 3, 4), (*words, repr(content[:300])))
        assert ended.mebibytes < _MEBIBYTES, f"{words}: {ended.mebibytes:.0f} MiB"
        if ended.code == 0 and words[0] == "encode":
            verified = world.forks(copy, "verify", "--deep", ended.out.strip(), limit=_SECONDS)
            check_told(verified, (0,), ("verify", "--deep", *words, repr(content[:300])))
    return 1


@cache
def _good(folder: Path) -> dict[str, list[bytes]]:
    """Return valid inputs, keyed like ``_COMMANDS``."""
    texts = [f"{index}.5 and {index}" for index in range(40)]
    tables: dict[str, list[object]] = {"text": [*texts], "y": [*range(len(texts))]}
    return {
        "x.jsonl": [(folder / f"{name}.jsonl").read_bytes() for name in ("odd", "rows")],
        "x.csv": [(folder / "rows.csv").read_bytes()],
        "x.parquet": [_parquet(tables), _parquet({"y": [1.5, None, 3.0], "z": ["a", "b", None]})],
        "x.toml": [_TOML],
        "phases.toml": [_PHASES],
        "numtok.toml": [_CONFIG],
        "specs": [*_SPECS],
    }


def _parquet(columns: dict[str, list[object]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _changed(random: Random, content: bytes) -> bytes:
    for _ in range(random.randint(1, 4)):
        content = random.choice(_CHANGES)(random, content, random.randrange(len(content) + 1))
    return content


def _insert(random: Random, content: bytes, at: int) -> bytes:
    return content[:at] + random.choice(_PIECES) + content[at:]


def _replace(random: Random, content: bytes, at: int) -> bytes:
    piece = random.choice(_PIECES)
    return content[:at] + piece + content[at + len(piece) % 64 :]


def _delete(random: Random, content: bytes, at: int) -> bytes:
    return content[:at] + content[at + random.choice([1, 2, 8, 100, len(content)]) :]


def _double(random: Random, content: bytes, at: int) -> bytes:
    return content[:at] + content[at : at + random.choice([1, 10, 1000])] * 2 + content[at:]


def _flip(random: Random, content: bytes, at: int) -> bytes:
    return content[:at] + random.randbytes(1) + content[at + 1 :]


def _recode(random: Random, content: bytes, at: int) -> bytes:
    code = random.choice(["utf-16", "utf-32", "cp1252", "utf-8-sig", "cp037"])
    return content.decode("latin-1").encode(code, "replace")


_CHANGES: tuple[Callable[[Random, bytes, int], bytes], ...]
_CHANGES = (_insert, _insert, _replace, _replace, _delete, _double, _flip, _recode)

HOSTILE = Promise(
    name="hostile-inputs",
    says="Any input ends a command with an exit code and one line, never with a traceback, in 20 "
    "seconds and 2 GB. What is encoded passes `numtok verify --deep`.",
    how="Rows, tables, Parquet files, sweeps, curricula, `numtok.toml` and specs are changed at "
    "one to four places: other bytes, cut, doubled, recoded, nested, other endings.",
    aim=3_000,
    unit="inputs",
    world=opened,
    case=hostile,
)
