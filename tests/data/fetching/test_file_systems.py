"""Addresses that cannot be read."""

import gc

import pytest

from numtok.data.fetching.file_systems import file_system
from numtok.errors import UsageError
from tests.cases import case


@pytest.mark.filterwarnings("error")
def test_kinds_of_address_that_need_more_than_an_address_are_refused() -> None:
    pytest.importorskip("fsspec", reason="addresses need fsspec")
    for url in ("ftp://127.0.0.1/a.jsonl", "github://a.jsonl", "webhdfs://a/b.jsonl", "dir://a"):
        with case(url=url):
            with pytest.raises(UsageError, match=f"{url.partition(':')[0]}:// .* cannot be read"):
                file_system(url)
            gc.collect()
