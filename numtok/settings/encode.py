"""``numtok encode``: texts -> encoded data."""

from dataclasses import KW_ONLY, dataclass

from numtok.declaration import CommandSettings, setting
from numtok.errors import UsageError
from numtok.settings import _fields

_ENCODING = ("scheme", "numerals", "normalize", "text_tokenizer")


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok encode`` was asked for; exactly one of ``scheme`` and ``like`` is given.

    ``numerals``, ``normalize`` and ``text_tokenizer`` are specs; None is the default, and with
    ``like`` they must be None, because the earlier artifact says them.
    """

    inputs: tuple[str, ...] = setting(help=_fields.INPUTS, argument=True, swept=False)
    _: KW_ONLY
    scheme: str | None = setting(None, "p1000, xval, p10,exponents=-10..10 ...", registry="schemes")
    like: str | None = setting(
        None,
        "Encode exactly as an earlier artifact.",
        metavar="REF",
        swept=False,
        replaces=_ENCODING,
    )
    name: str | None = _fields.name("Default: the input's and the scheme's.")
    split: str | None = _fields.split_shares()
    numerals: str | None = _fields.numerals()
    normalize: str | None = setting(
        None,
        "none, scale:5, affine, unit, signed-log. Default: the scheme's.",
        registry="normalizers",
    )
    text_tokenizer: str | None = setting(
        None,
        "words[:N], structure[:N], bpe:N, bytes, a tokenizer.json, or hf:FOLDER_OR_ID of a model.",
        registry="text_tokenizers",
    )
    text_field: str = _fields.text_field()
    workers: int | None = _fields.workers()
    engine: str = _fields.engine()
    on_error: str = _fields.on_error("A bad row: fail, or skip and keep it.")
    on_clip: str = setting(
        "count",
        "A number out of range: count, or error.",
        choices=("count", "error"),
        counts="version",
        omit_default=True,
    )
    max_line: int = _fields.max_line()
    disk_limit: str | None = _fields.disk_limit()
    restart: bool = _fields.restart()
    force: bool = _fields.force()
    dry_run: bool = _fields.dry_run()

    def __post_init__(self) -> None:
        if (self.scheme is None) == (self.like is None):
            raise UsageError(
                "encode needs --scheme SPEC or --like REF, one of the two; "
                "`numtok schemes` lists the schemes"
            )
        for option in _ENCODING if self.like else ():
            if getattr(self, option) is not None:
                raise UsageError(
                    f"--{option.replace('_', '-')} cannot be changed with --like, which uses the "
                    "encoding of the earlier artifact; leave it out, or give --scheme"
                )
        super().__post_init__()
