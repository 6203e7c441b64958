"""Settings of ``numtok encode``, which encodes texts as tokens and numbers."""

from dataclasses import KW_ONLY, dataclass

from numtok.declaration import CommandSettings, setting, settings_in
from numtok.errors import UsageError
from numtok.settings import _fields, _rendering

_ENCODING = ("scheme", "numerals", "not_numbers", "normalize", "text_tokenizer")


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok encode``; exactly one of ``scheme`` and ``like`` is set.

    ``like`` is the REF of an artifact whose encoding is reused. ``numerals``, ``normalize`` and
    ``text_tokenizer`` are specs, or None for the defaults. With ``like`` they must be None, because
    the reused encoding includes them.

    target
        Fields of a file to predict; its rows become texts (:mod:`numtok.data.records.template`).
        If empty, rows are texts, with targets as spans if they have any.
    fields, drop
        Fields that the text consists of, or to leave out of it.
    """

    inputs: tuple[str, ...] = setting(help=_fields.INPUTS, argument=True, swept=False)
    _: KW_ONLY
    scheme: str | None = setting(
        None, "Number scheme, such as p1000, xval or p10,exponents=-10..10", registry="schemes"
    )
    like: str | None = setting(
        None,
        "Encode with the vocabulary and scaling of this artifact",
        flag="reuse-encoding",
        formerly=("like",),
        metavar="REF",
        swept=False,
        replaces=_ENCODING,
    )
    name: str | None = _fields.name("INPUT-SCHEME")
    target: tuple[str, ...] = _rendering.target()
    fields: tuple[str, ...] = _rendering.fields()
    drop: tuple[str, ...] = _rendering.drop()
    split: str | None = _fields.split_shares()
    numerals: str | None = _fields.numerals()
    not_numbers: tuple[str, ...] = _fields.not_numbers()
    normalize: str | None = setting(
        None,
        "Normalizer for numbers: none, scale:5, affine, unit or signed-log",
        registry="normalizers",
        shown_default="depends on the scheme",
    )
    text_tokenizer: str | None = setting(
        None,
        "Text tokenizer: words[:N], structure[:N], bpe:N, bytes, a tokenizer.json, or "
        "hf:FOLDER_OR_ID of a model",
        registry="text_tokenizers",
        shown_default="words",
    )
    text_field: str | None = _fields.text_field()
    workers: int | None = _fields.workers()
    engine: str = _fields.engine()
    on_error: str = _fields.on_error(
        "On a bad row: fail, or skip it and store it with the skipped rows"
    )
    on_clip: str = setting(
        "count",
        "On numbers outside the scheme's range: count them, or fail",
        flag="on-overflow",
        formerly=("on-clip",),
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
                "encode needs either --scheme or --reuse-encoding. List schemes: numtok schemes"
            )
        for option in _ENCODING if self.like else ():
            if getattr(self, option) not in (None, ()):
                flag = settings_in(Config)[option].flag
                raise UsageError(f"--{flag} and --reuse-encoding cannot be combined. Choose one")
        _rendering.check(self)
        super().__post_init__()
