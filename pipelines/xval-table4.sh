#!/usr/bin/env bash
# Table 4 of xVal at the scale that SCALE names: the runs of xval-table4.toml at equal samples, equal
# tokens and equal time.
#
# ERA5 is where the weather is from: a name that `numtok fetch era5` knows, or a copy on this machine.
# With OUT Figures 3 and 4 as well, of the models at equal samples: pictures of the first seed, and
# how often each scheme says 0.1 and 1.0, with all.
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
