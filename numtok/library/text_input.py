"""X of :class:`numtok.TextRegressor`: a column of texts, or a table whose rows become texts."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from numtok.data.tables.frames import frame_table, is_frame
from numtok.errors import DataError

TEXT = "x"  # column of the texts


class TextInput(NamedTuple):
    """``n`` rows that a model predicts from.

    table [n rows]
        Columns of texts, numbers and other values.
    bare
        True if X is a column of texts. Otherwise, a row becomes one line ``name: value`` per
        column.
    """

    table: pa.Table
    bare: bool

    @classmethod
    def of(cls, X: Any, y: Any, estimator: Any, *, reset: bool) -> "TextInput":
        """Convert and check X. Names and number of its columns are stored in the estimator if
        ``reset`` is true, and compared otherwise.

        A 1-D array-like contains texts, like a 2-D array with a single column of strings. Columns
        of other arrays are named ``x0``, ``x1``, ... Raises ValueError, or TypeError for sparse
        matrices, as scikit-learn does, and DataError for values that cannot be written as text.
        """
        least = {"ensure_min_samples": 2 if reset else 1}
        checks: dict[str, Any] = {"input_name": "X", "estimator": estimator} | least
        if is_frame(X):
            given = cls(frame_table(X, "X"), bare=False)
            named = X if hasattr(X, "__arrow_c_stream__") else given.table
            validate_data(estimator, named, y, reset=reset, skip_check_array=True)
            check_array(np.empty(given.table.shape, np.bool_), **checks)
            return given
        array = check_array(
            X,
            dtype=None if isinstance(X, np.ndarray) else object,  # strings of their own lengths
            ensure_2d=False,
            ensure_all_finite="allow-nan",
            **checks,
        )
        columns = [_column(values) for values in np.atleast_2d(array.T)]
        bare = len(columns) == 1 and pa.types.is_string(columns[0].type)
        if array.ndim == 1 and not bare:
            raise ValueError(
                f"X must contain texts if it has one dimension (got {columns[0].type}). Reshape "
                "your data: X.reshape(-1, 1)"
            )
        validate_data(
            estimator, array.reshape(len(array), -1), y, reset=reset, skip_check_array=True
        )
        names = [TEXT] if bare else [f"x{index}" for index in range(len(columns))]
        return cls(pa.table(columns, names=names), bare)


def _column(values: Any) -> "pa.Array[Any]":
    """Return values [n] as an Arrow array; None and NaN are missing."""
    try:
        column = pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(f"X cannot be read: {'; '.join(map(str, error.args))}") from None
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    return column.cast(pa.string()) if pa.types.is_large_string(column.type) else column
