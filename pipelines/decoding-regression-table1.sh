#!/usr/bin/env bash
# Table 1 of Decoding-based Regression: runs decoding-regression-table1.toml at scale SCALE, with a
# mean over functions for each dimension.
#
#     SCALE=cpu pipelines/decoding-regression-table1.sh
#
# At paper scale, it also tries the paper's weight decays of the pointwise head, in separate tables.
# scales.sh describes SCALE and all variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

table1() {
    tables decoding-regression-table1.toml --set gen.function="$(list $FUNCTIONS)" \
        --set gen.rows=$((ROWS * 5 / 4)) "$@"
}

for dimension in $DIMENSIONS; do
    echo "=== $dimension dimensions"
    table1 --set gen.dimension="$dimension" --set train.head="$(list $UD $ND $POINTWISE $RIEMANN)"
    [ "$SCALE" != paper ] || table1 --set gen.dimension="$dimension" \
        --set train.head="$(list $POINTWISE)" --set train.weight-decay='[0.0, 0.1, 1.0]' \
        --set select.over='["head", "preset", "lr", "weight-decay"]'
done
