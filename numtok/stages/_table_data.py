"""The rows of a table artifact, for the stages that learn from it and evaluate on it."""

from numtok.artifact import Artifact
from numtok.tables import TABLE_FILE, Table, read_table


def read_table_of(artifact: Artifact) -> Table:
    """All rows; raises as ``tables.read_table``."""
    names = sorted(output.path for output in artifact.files() if output.path != TABLE_FILE)
    return read_table(artifact.path, names)
