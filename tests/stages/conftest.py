"""The command line in the process of the tests, for all stages."""

from tests.cli.test_store_commands import numtok as numtok
