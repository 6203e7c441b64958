"""Settings of ``numtok nupa``, which scores a report, or the answers of any model, on NUPA."""

from dataclasses import dataclass

from numtok.declaration import CommandSettings, setting


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok nupa``. ``ref`` is the REF of a report or, with ``answers``, of the data
    whose questions were answered."""

    ref: str = setting(help="REF of a report on NUPA; with --answers, of the data", argument=True)
    answers: str | None = setting(
        None,
        'Answers of any model: JSONL of {"id": ID, "answer": TEXT or null}',
        metavar="FILE",
    )
    split: str = setting("test", "Split that the answers belong to", metavar="NAME")
    rule: str | None = setting(
        None,
        "How to find the answer in a text: published, published-chat or strict",
        metavar="NAME",
        shown_default="published",
    )
