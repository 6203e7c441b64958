#!/usr/bin/env bash
# Figure 4 of Decoding-based Regression at the scale that SCALE names: the runs of the sweep file
# beside it.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

tables decoding-regression-figure4.toml --set gen.samples=$((ROWS * 5 / 4)) \
    --set train.head="$(list $UD $POINTWISE)" ${CURVES:+--set gen.curve="$(list $CURVES)"}
