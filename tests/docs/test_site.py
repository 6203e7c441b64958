"""The site: every page is in the navigation, and mkdocs builds it without warnings."""

import csv
import doctest
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from docs.site import (
    build,
    commands,
    console,
    overviews,
    papers,
    python,
    results,
    schemes,
    tables,
)
from docs.site.text import table
from numtok.encoding.schemes.base import SCHEMES
from numtok.plugins import registries
from numtok.registry import registry_in


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build.collect(folder)
    return folder


def pages_in(navigation: list[Any]) -> list[str]:
    found: list[str] = []
    for entry in navigation:
        below = next(iter(entry.values())) if isinstance(entry, dict) else entry
        found += pages_in(below) if isinstance(below, list) else [below]
    return found


@pytest.mark.integration
def test_every_page_is_in_the_navigation_once(site: Path) -> None:
    config = yaml.safe_load((site / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = pages_in(config["nav"])
    there = sorted(path.relative_to(site / "pages").as_posix() for path in site.rglob("*.md"))
    assert sorted(listed) == there


@pytest.mark.integration
def test_schemes_commands_and_parts_have_pages(site: Path) -> None:
    for name in SCHEMES:
        page = (site / f"pages/schemes/{name}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# {name}\n") and "## Four numbers" in page
    for name in commands.commands():
        page = (site / f"pages/reference/commands/{name}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# numtok {name}\n")
    for folder in set(registries()) - {"schemes"}:
        assert (site / f"pages/reference/parts/{folder}.md").exists()
    train = (site / "pages/reference/commands/train.md").read_text(encoding="utf-8")
    assert "| `--digit-positions" in train and "| `DATA`" in train


@pytest.mark.integration
def test_the_site_builds_without_warnings(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for package in ("material", "mkdocstrings_handlers"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install numtok[docs]")
    assert build.build(tmp_path) == 0, capfd.readouterr().err
    home = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="https?://', home)


def test_a_scheme_page_shows_tokens_and_results() -> None:
    page = schemes.page("p1000")
    tokens = [f'<span class="token">{token}</span>' for token in ("-", "602", "E-1")]
    assert "".join(tokens) in page
    assert "| `exponents=` | -8..7 |" in page
    assert "products 0.86" in page


def test_schemes_are_good_and_bad_at_what_the_grand_table_says() -> None:
    found = {(one.encoding, one.budget, one.data): one for one in results.grand_table()}
    best = found["xval, normalize=signed-log", "500 steps", "products"]
    assert (best.place, best.skill) == (1, 0.97)
    assert "NUPA 0.82" in results.standings("xval")
    assert "does not include" in results.standings("rt")


def test_the_readme_counts_what_there_is() -> None:
    page = (build.ROOT / "README.md").read_text(encoding="utf-8")
    count = {kind: len(list(registry_in(package))) for kind, package in registries().items()}
    assert "{schemes} schemes, {embedders} embedders, {heads} heads".format(**count) in page
    assert "{tasks} tasks and {sources} public sources".format(**count) in page
    assert "{metrics} metrics".format(**count) in page
    total = papers.fidelity().total
    assert f"{total.seeded} of {total.printed} printed orderings" in page
    assert f"{total.verdicts['reproduced']} reproduced, {total.verdicts['contradicted']}" in page


def test_every_public_name_is_on_a_page_of_the_python_api() -> None:
    text = "".join(text for _, text in python.pages())
    for name in python.public_names():
        assert f"`numtok.{name}`" in text


def test_the_leaderboard_has_every_encoding_for_both_budgets() -> None:
    page = results.leaderboard()
    for encoding in {one.encoding for one in results.grand_table() if one.rank}:
        assert page.count(f"| `{encoding}` |") == 2


def test_numbers_of_the_page_on_encodings_are_those_of_the_data() -> None:
    page = (build.DOCS / "get-started/which-encoding.md").read_text(encoding="utf-8")
    assert page.count("<!-- value: ") > 20
    assert papers.outdated(page) == []
    assert papers.outdated(page.replace("0.872<!--", "0.873<!--")) != []


def test_results_are_filled_into_pages() -> None:
    page = "a\n<!-- table: xval/table3 -->\np1000: {{ cell: xval/table3 | p1000 | 2 operands }}\n"
    filled = papers.filled(page)
    assert "| `p1000` | 0.948\u00a0±\u00a00.012\u00a0(0.991) |" in filled
    assert filled.endswith("p1000: 0.948 ± 0.012\n")
    assert '??? note "Other settings"' in filled
    count = papers.filled("{{ fidelity: seeded }} of {{ fidelity: printed }}")
    assert count == f"{papers.fidelity().total.seeded} of {papers.fidelity().total.printed}"


def test_rows_of_a_table_have_the_same_budget() -> None:
    page = papers.measured_table("numvalue/table1").replace("\u00a0", " ")
    assert "| `standard-transformer` | 0.598 ± 0.036 (0.687) |" in page  # 0.720 at twice the steps
    assert "| `numvalue-mlp` | 0.600 ± 0.015 (0.720) |" in page


@pytest.mark.parametrize("module", [console, papers, tables], ids=lambda module: module.__name__)
def test_examples_in_docstrings_are_right(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


def test_columns_of_numbers_are_aligned_to_the_right() -> None:
    text = table(("name", "value"), [("a", "1.5"), ("b", "")])
    assert text.splitlines()[1] == "| --- | ---: |"


def result_pages() -> dict[str, str]:
    found = (build.DOCS / "results").glob("*.md")
    return {path.name: path.read_text(encoding="utf-8") for path in found}


def test_pages_leave_no_result_unfilled() -> None:
    for name, page in result_pages().items():
        assert not re.findall(r"\{\{|<!-- \w+: \S+ -->", papers.filled(page)), name


def typed_rows(page: str) -> list[str]:
    """Return the lines of Markdown tables in which a cell begins with a number."""
    return re.findall(r"^\|.*?\|[ *]*[-+]?\d.*$|^\|[ *]*[-+]?\d.*$", page, re.M)


def test_no_table_of_numbers_is_typed_by_hand() -> None:
    assert {
        name: found for name, page in result_pages().items() if (found := typed_rows(page))
    } == {}
    assert typed_rows("| a | b |\n|---|---|\n| x | **0.5** [0, 1] |\n| 1,600 | y |\n") != []


def test_every_stored_table_is_on_a_page() -> None:
    pages = "".join(result_pages().values())
    stored = [path.stem for path in (tables.RESULTS / "tables").glob("*.csv")]
    assert [name for name in stored if not re.search(rf"\b{name}(?: -->| \||\.csv)", pages)] == []


def test_cells_have_a_value_and_a_source() -> None:
    for path in (tables.RESULTS / "tables").glob("*.csv"):
        rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
        if "column" in (rows.fieldnames or ()):
            assert all(row["value"] and row["source"] for row in rows), path.name


def test_a_sentence_has_a_cell_with_and_without_its_interval() -> None:
    page = "{{ value: fone-sums | 1,600 | fone }}, {{ interval: fone-sums | 1,600 | fone }}"
    assert papers.filled(page) == "0.96, 0.96 [0.94, 0.99]"
    assert papers.filled("{{ value: equal-samples | fone | mean rank }}") == "7.4"
    seeds = papers.filled("{{ value: longer-sums | reversed, coupling,offsets=12 | 11 }}")
    assert seeds == "0.97, 0.01, 0.65"


@pytest.mark.parametrize(
    "wrong",
    ["gone | 1,600 | fone", "fone-sums | 1,601 | fone", "fone-sums | 1,600 | gone"],
    ids=["file", "row", "column"],
)
def test_a_cell_that_does_not_exist_is_an_error(wrong: str) -> None:
    with pytest.raises(KeyError, match=r"gone|1,601"):
        papers.filled(f"{{{{ value: {wrong} }}}}")


def test_coverage_is_the_mean_of_random_splits_with_its_interval() -> None:
    table = results.coverage("random")
    assert table.cell("films", "mdn:5, calibrated") == "0.895 ± 0.009"
    assert table.cell("artworks", "median") == "0.924 ± 0.003"


def test_a_value_that_was_not_measured_is_an_error() -> None:
    with pytest.raises(KeyError, match="no measurement of b1999"):
        papers.filled("{{ cell: xval/table2 | b1999 | 5 digits }}")


def test_models_and_benchmarks_have_a_page_with_every_part() -> None:
    models, benchmarks = overviews.models(), overviews.benchmarks()
    for folder, page in (("heads", models), ("trunks", models), ("tasks", benchmarks)):
        for name in registry_in(registries()[folder]):
            assert f"| `{name}` |" in page
    assert "| `xval/table3` |" in benchmarks
