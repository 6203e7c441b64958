#!/usr/bin/env bash
# Figure 12 of Decoding-based Regression: runs decoding-regression-figure12.toml at scale SCALE.
#
#     SCALE=cpu pipelines/decoding-regression-figure12.sh
#
# scales.sh describes SCALE and all variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

uci decoding-regression-figure12.toml --set eval.num-samples="[$(echo $DRAWS | tr " " ,)]"
