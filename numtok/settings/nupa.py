"""``numtok nupa``: a report, or any model's answers -> the tables of NUPA."""

from dataclasses import dataclass

from numtok.declaration import CommandSettings, setting


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok nupa`` was asked for: a report, or data and a file of answers to it."""

    ref: str = setting(help="A report on NUPA; with --answers the data.", argument=True)
    answers: str | None = setting(
        None,
        'What any model generated: JSONL of {"id": of the row, "answer": text or null}.',
        metavar="FILE",
    )
    split: str = setting("test", "Of the data: what was asked.", metavar="NAME")
    rule: str | None = setting(
        None,
        "How an answer is found in a text: published (default), published-chat, strict.",
        metavar="NAME",
    )
