#!/usr/bin/env bash
# Figure 5 of Decoding-based Regression: runs decoding-regression-figure5.toml at scale SCALE.
#
#     SCALE=cpu pipelines/decoding-regression-figure5.sh
#
# scales.sh describes SCALE and all variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

tables decoding-regression-figure5.toml --set fetch.task="[$(echo $TASKS | tr " " ,)]" \
    --set train.head="$(list $UD $POINTWISE)"
