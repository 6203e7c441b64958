#!/usr/bin/env bash
# Table 1 of Decoding-based Regression at the scale that SCALE names: the runs of the sweep file
# beside it, with a mean over the functions for each dimension. The paper's weight decays of the
# pointwise head are tried at its scale alone, in tables of their own.
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
