"""Tables with one number feature: what can be drawn over it."""

from numtok.data.tables.table import TableFile
from numtok.errors import UsageError


def one_feature(ref: str, file: TableFile) -> str:
    """The name of the only feature, a number; UsageError where there are others.

    >>> feature = Feature("x", "number")
    >>> one_feature("t", TableFile(target="y", features=[feature], splits=[], notes=[]))
    'x'
    """
    if [one.kind for one in file.features] != ["number"]:
        told = ", ".join(f"{one.name} ({one.kind})" for one in file.features)
        raise UsageError(
            f"the x axis is a table's only feature, a number, and {ref} has {told}; "
            "figure truth takes any table"
        )
    return file.features[0].name
