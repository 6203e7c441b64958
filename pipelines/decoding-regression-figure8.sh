#!/usr/bin/env bash
# Figure 8 of Decoding-based Regression: runs decoding-regression-figure8.toml at scale SCALE.
#
#     SCALE=cpu pipelines/decoding-regression-figure8.sh
#
# WRITER_SIZES lists the sizes of the decoder as LAYERS,HEADS,WIDTH (not at smoke scale). scales.sh
# describes SCALE and all other variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

: "${WRITER_SIZES:=3,4,128 1,4,128 5,4,128 3,1,128 3,8,128 3,4,32 3,4,512}"
[ "$SCALE" != smoke ] || WRITER_SIZES="1,1,8 2,1,8"

heads=$(for size in $WRITER_SIZES; do
    IFS=, read -r layers heads width <<< "$size"
    echo "decoder:nd,base=10,length=4,layers=$layers,heads=$heads,width=$width"
done)
uci decoding-regression-figure8.toml --set train.head="$(list $heads)"
