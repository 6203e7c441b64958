#!/usr/bin/env bash
# Figure 9 of Decoding-based Regression: runs decoding-regression-figure9.toml at scale SCALE, with
# the first setting of the decoder.
#
#     SCALE=cpu pipelines/decoding-regression-figure9.sh
#
# scales.sh describes SCALE and all variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

first() {
    echo "$1"
}

head=$(first $UD)
uci decoding-regression-figure9.toml --set eval.num-samples="[$(echo $DRAWS | tr " " ,)]" \
    --set train.head="$(list "$head" "$head,repeat=3" "$head,repeat=5")"
