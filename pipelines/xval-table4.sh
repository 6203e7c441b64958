#!/usr/bin/env bash
# Table 4 of xVal at the scale that SCALE names: the runs of xval-table4.toml at equal samples, equal
# tokens and equal time.
#
# ERA5 is where the weather is from: a name that `numtok fetch era5` knows, or a copy on this machine.
set -euo pipefail
. "$(dirname "$0")/scales.sh"
weather

field=$(numtok fetch era5 --from "${ERA5:=weatherbench2}" --area "$AREA" --period "$PERIOD" \
    ${HOURS:+--every "$HOURS"})

table4() { # table4 COLUMN BUDGET=AMOUNT
    echo "=== $1"
    sweep xval-table4.toml --set gen.from="$field" --set gen.stations="\"$STATIONS\"" \
        --set gen.days="\"$DAYS\"" --set gen.every="$EVERY" --set gen.split="\"$PARTS\"" \
        --set train.objective="$OBJECTIVE" --set train.precision="$PRECISION" \
        --set compare.against=xval/table4 --set compare.column="\"$1: loss\"" --set "train.$2"
}

table4 "equal samples" steps="$STEPS"
table4 "equal tokens" tokens="$TOKENS"
table4 "equal time" minutes="$MINUTES"
