"""Builds the documentation site: ``python -m docs.site``.

__main__.py    command line: build the site, or rewrite the output of console blocks
assets/        style sheet and scripts of the site
build.py       collects hand-written and generated pages, then runs mkdocs
commands.py    one page per command, and one per kind of part, from the setting declarations
console.py     runs console blocks of pages and compares or rewrites their output
notebooks.py   pages of the notebooks
overviews.py   pages on models and on benchmarks
papers.py      results in hand-written pages
python.py      pages of the Python API, for mkdocstrings
results.py     result pages from docs/results/*.csv
schemes.py     gallery of schemes, and one page per scheme
tables.py      tables from docs/results/tables
text.py        Markdown and HTML helpers
warm.py        numtok in processes forked from a warm one, and the sample store
"""
