"""Hold help, messages, docstrings, comments and pages to plain English.

Each rule is a phrase that reads as translated, what to write instead, and how often the tree may
still contain it. A budget may only fall: lower it when you rewrite a sentence. Pages also keep
their sentences and paragraphs short.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = sorted((ROOT / "numtok").rglob("*.py"))
#: The log keeps its original wording.
PAGES = [
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if page.parent != ROOT / "docs/log"
]
MOST_WORDS = {"sentence": 30, "paragraph": 80}
WORD = re.compile(r"\w")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A phrase to avoid, what to write instead, and how many are left in code and on pages."""

    phrase: str
    instead: str
    code: int
    pages: int


RULES = [
    Rule(phrase=r"\blearnt\b", instead="trained, fitted", code=0, pages=0),
    Rule(
        phrase=r"\b(?:is|are|was|were|be|been|being) (?:told|said|asked|looked at)\b",
        instead="say who prints, reports, passes or reads it",
        code=0,
        pages=0,
    ),
    Rule(
        phrase=r"\b(?:nobody|whoever|which none|(?:has|have|knows) nothing)\b",
        instead="name the thing",
        code=0,
        pages=0,
    ),
    Rule(
        phrase=r"\b(?:is|are) (?:no|none)\b(?! (?:longer|more|need))",
        instead="is not a ..., there is no ..., has no ...",
        code=27,
        pages=4,
    ),
    Rule(
        phrase=r"\b(?:[Ss]o many|[Aa]s many as|so much|so often)\b",
        instead="N, this many, the number of",
        code=3,
        pages=0,
    ),
    Rule(
        phrase=r"\b(?:that (?:is|are|was|were) there|what is there|at hand|in sight)\b",
        instead="existing, available",
        code=0,
        pages=0,
    ),
    Rule(phrase=r"\bbeside\b", instead="next to, with, as well as", code=2, pages=0),
    Rule(
        phrase=r"\b(?:[Ll]ikewise|anew|as (?:it is|they are|it stands))\b",
        instead="again, unchanged, or nothing",
        code=1,
        pages=0,
    ),
    Rule(phrase=r"\b(?:alone|, too)(?=[.,;:)])", instead="only, also", code=5, pages=0),
    Rule(
        phrase=r"(?m)^\s*(?:Of|Those|That of|What|Where|As|How many|Whether)\b(?!.*\?)",
        instead="begin with a verb or a noun: 'Return ...', 'Number of ...'",
        code=10,
        pages=0,
    ),
    Rule(
        phrase=r"\b(?:goe?s? on|stands (?:in|at|beside|behind|there)|stood)\b",
        instead="resumes, continues, is in",
        code=0,
        pages=0,
    ),
    Rule(
        phrase=r"\b(?:means nothing|is not possible)\b",
        instead="only applies to, must be, cannot be combined with",
        code=0,
        pages=0,
    ),
    Rule(
        phrase=r"(?<!standard )(?<!absolute )\bdeviations?\b",
        instead="standard deviation",
        code=11,
        pages=1,
    ),
    Rule(
        phrase=r"\bfigures? (?:of|for|with|is|are)\b",
        instead="metric, value, score; figures are drawn",
        code=1,
        pages=0,
    ),
    Rule(
        phrase=r"\b(?:normal|token|quant|initial|optim|recogn|summar|serial)is(?:e|ed|er|ing|ation)\b",
        instead="-ize: American spelling",
        code=0,
        pages=0,
    ),
]


def prose_of(code: str) -> Iterator[str]:
    """Yield the comments of Python code, and its strings of several words."""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("#: ")
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value


@cache
def prose_of_code() -> list[tuple[Path, str]]:
    """Return every file of the package with its prose."""
    return [
        (path.relative_to(ROOT), "\n".join(prose_of(path.read_text(encoding="utf-8"))))
        for path in CODE
    ]


@cache
def prose_of_pages() -> list[tuple[Path, str]]:
    """Return every page with its prose."""
    return [
        (path.relative_to(ROOT), without_code(path.read_text(encoding="utf-8"))) for path in PAGES
    ]


def without_code(page: str) -> str:
    """Return a page without its code blocks, so that only sentences remain."""
    return re.sub(r"(?ms)^ *```.*?^ *```$", "", page)


def paragraphs_of(page: str) -> Iterator[str]:
    """Yield the paragraphs and list items of a page; inline code, or a result filled in,
    counts as one word."""
    text = re.sub(r"`[^`]*`|\{\{[^}]*\}\}", "X", without_code(page))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    for block in re.split(r"\n\s*\n|\n\s*(?=(?:[-*]|\d+\.) )", text):
        if not block.lstrip().startswith(("#", "|", "<")):
            yield " ".join(block.split())


def too_long(page: str) -> Iterator[str]:
    """Yield each sentence and paragraph of a page that has too many words, outside comments."""
    for paragraph in paragraphs_of(re.sub(r"<!-- [^\n]*? -->", "", page)):
        sentences = re.split(r"(?<=[.!?:;]) +(?=[A-Z\"(*])|(?<=[.!?]) +", paragraph)
        for kind, texts in (("paragraph", [paragraph]), ("sentence", sentences)):
            for text in texts:
                count = sum(bool(WORD.search(word)) for word in text.split())
                if count > MOST_WORDS[kind]:
                    yield f"a {kind} of {count} words, at most {MOST_WORDS[kind]}: {text[:60]} ..."


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.instead[:24])
def test_phrases_that_read_as_translated_only_get_fewer(rule: Rule) -> None:
    phrase = re.compile(rule.phrase)
    for texts, most in ((prose_of_code(), rule.code), (prose_of_pages(), rule.pages)):
        hits = [
            f"{path}: {hit.group().strip()}"
            for path, text in texts
            for hit in phrase.finditer(text)
        ]
        assert len(hits) <= most, f"write {rule.instead!r} in place of one of {hits[-20:]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_have_short_sentences_and_paragraphs(page: Path) -> None:
    assert not list(too_long(page.read_text(encoding="utf-8")))


def test_long_sentences_and_paragraphs_are_found() -> None:
    short = "It is `numtok encode --scheme p10` that wrote [these](docs/a.md) tokens. " * 7
    assert not list(too_long(short))
    assert len(list(too_long(short * 2))) == 1
    assert len(list(too_long("word " * 31 + "end."))) == 1
