"""Addresses in output."""

import pytest

from numtok.data.fetching.file_systems import file_system
from numtok.data.reading.addresses import shown_of
from numtok.errors import UsageError
from tests.cases import each
from tests.messages import Says


@each(
    "url",
    [
        "s3://me:secret@bucket/a.jsonl",
        "s3://AKIA:sec/ret@bucket/a.jsonl",
        "S3://:secret@bucket/*.jsonl",
        "nothing://me:123secret@host/a.jsonl",
    ],
)
def test_an_address_with_a_password_is_refused_without_it(url: str, says: Says) -> None:
    with pytest.raises(UsageError) as caught:
        file_system(url)
    says(caught, "must not contain a password", "AWS_SECRET_ACCESS_KEY", shown_of(url))
    assert not any(part in str(caught.value) for part in ("ret@", "secret", "123", "AKIA"))


@each(
    "url",
    [
        "s3://bucket/a@b:c@d.jsonl",
        "hdfs://host:9000/a@b.jsonl",
        "abfs://container@account/a.jsonl",
        "s3://arn:aws:s3:eu-west-1:123456789012:accesspoint/a/b@c.jsonl",
    ],
)
def test_an_address_without_a_password_is_shown_whole(url: str) -> None:
    assert shown_of(url) == url
