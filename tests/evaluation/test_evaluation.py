"""The table of predictions, which all evaluators share."""

import numpy as np
import pyarrow as pa

from numtok.evaluation.evaluation import predictions_table, quantile_columns
from numtok.reports import QUANTILES, predictions_schema


def test_what_is_not_known_is_null_and_a_nan_of_arrow_stays_one() -> None:
    table = predictions_table(
        {
            "id": pa.array(["a", "b"]),
            "truth": pa.array([np.nan, 1.0]),
            "prediction": np.array([np.nan, 2.0]),
            "prediction_literal": np.array([None, "2"], object),
            "valid": np.array([False, True]),
            "no column of these": [1, 2, 3],
        },
        predictions_schema(["g"]),
    )
    assert table.schema.equals(predictions_schema(["g"]))
    filled = ("truth", "prediction", "prediction_literal", "valid")
    truth, *columns = (table.column(name).to_pylist() for name in filled)
    assert np.isnan(truth[0]) and columns == [[None, 2.0], [None, "2"], [False, True]]
    empty = set(table.column_names) - {"id", *filled}
    assert empty and all(table.column(name).null_count == 2 for name in empty)


def test_quantiles_are_columns_in_their_order() -> None:
    columns = quantile_columns(np.arange(2.0 * len(QUANTILES)).reshape(2, -1))
    assert list(columns) == ["q05", "q25", "q50", "q75", "q95"]
    assert columns["q25"].tolist() == [1, 6]
