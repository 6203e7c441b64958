#!/usr/bin/env bash
# Table 4 of xVal: runs xval-table4.toml at scale SCALE, at equal samples, equal tokens and equal
# time.
#
#     SCALE=cpu pipelines/xval-table4.sh
#
#   ERA5            weather data: a value of `numtok fetch era5 --from`, or a copy (default
#                   weatherbench2)
#   OUT             folder for Figures 3 and 4, from the models at equal samples: plots for the
#                   first seed, and how often each scheme predicts 0.1 and 1.0, for all seeds
#
# scales.sh describes SCALE and all other variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"
weather

field=$(numtok fetch era5 --from "${ERA5:=weatherbench2}" --area "$AREA" --period "$PERIOD" \
    ${HOURS:+--every "$HOURS"})

table4() { # table4 COLUMN BUDGET=AMOUNT [OPTION...]
    sweep xval-table4.toml --set gen.from="$field" --set gen.stations="\"$STATIONS\"" \
        --set gen.days="\"$DAYS\"" --set gen.every="$EVERY" --set gen.split="\"$PARTS\"" \
        --set train.objective="$OBJECTIVE" --set train.precision="$PRECISION" \
        --set compare.against=xval/table4 --set compare.column="\"$1: loss\"" \
        --set "train.$2" "${@:3}"
}

echo "=== equal samples"
table4 "equal samples" steps="$STEPS"
if [ -n "${OUT:-}" ]; then
    mkdir -p "$OUT"
    read -r seed _ <<< "$SEEDS"
    # shellcheck disable=SC2207 - REFs have no spaces
    first=($(SEEDS=$seed table4 "equal samples" steps="$STEPS" --json | reports))
    numtok figure truth "${first[@]}" --out "$OUT/xval-figure3.png"
    for part in mantissa exponent number; do
        numtok figure frequencies "${first[@]}" --part $part --out "$OUT/xval-figure4-$part.png"
    done
    numtok diagnose "${first[@]}"
    # shellcheck disable=SC2046 - several REFs
    "$(dirname "$(command -v numtok)")/python" "$(dirname "$0")/xval-figure4.py" \
        $(table4 "equal samples" steps="$STEPS" --json | reports)
fi
echo "=== equal tokens"
table4 "equal tokens" tokens="$TOKENS"
echo "=== equal time"
table4 "equal time" minutes="$MINUTES"
