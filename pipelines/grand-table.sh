#!/usr/bin/env bash
# The grand table: every encoding on eight data sets, at equal samples and at equal time. The sweep
# file is grand-table.toml.
#
#     JOBS=2 pipelines/grand-table.sh
#
# On two cores, equal samples take about six hours, and equal time two and a half. Nothing else
# should run during the second. The same command resumes a stopped run. SCALE=smoke is a quick test.
#
#   STEPS           budget for equal samples (default 500)
#   MINUTES         budget for equal time (default 0.2)
#   ERA5            weather data: a value of `numtok fetch era5 --from`, or a copy (default
#                   weatherbench2)
#   UCI             folder with a copy of uci_datasets; otherwise airfoil is downloaded
#   SEEDS, JOBS     see scales.sh
#
# The script writes airfoil-rows.csv into the current folder.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
given=${STEPS:-} # before scales.sh sets those of other pipelines
. "$here/scales.sh"
case "$SCALE" in
    smoke)
        ROWS=600
        STEPS=${given:-20}
        : "${MINUTES:=0.02}"
        ;;
    *)
        ROWS=20000
        STEPS=${given:-500}
        : "${MINUTES:=0.2}"
        ;;
esac
PARTS=validation=0.05,test=0.1

numtok gen arithmetic --operands 2 --operators + --rows $ROWS --split $PARTS --name sums
numtok gen arithmetic --kind product --rows $ROWS --split $PARTS --name products
numtok gen arithmetic --operands 3 --rows $ROWS --split $PARTS --name mixed
numtok gen orbits --planets 2 --steps 1 --points 3 --span 2..3 --rows $ROWS --split $PARTS \
    --name orbits
numtok gen nupa --tasks add_Integer+sub_Integer+max_Float+multiply_easy_Integer --digits 1..5 \
    --train $((ROWS / 20)) --validation 50 --test 100 --prompt short --name nupa
numtok gen wordproblems --form generate --rows $ROWS --split $PARTS --name stories
field=$(numtok fetch era5 --from "${ERA5:=weatherbench2}" --area 58,-10,50,2 \
    --period 2019-03-01..2019-03-31 --name uk)
numtok gen temperature --from "$field" --stations 2..2 --days 1 --rows $ROWS \
    --split validation=0.15,test=0.2 --name temperatures
table=$(numtok fetch uci --set airfoil ${UCI:+--from "$UCI"})
# Write the first fold as a CSV, with every tenth training row as validation.
"$(dirname "$(command -v numtok)")/python" - "$table" <<'END'
import sys

import numtok
import polars as pl

rows = pl.read_parquet(numtok.load(sys.argv[1]).path / "rows-*.parquet")
train = pl.col("split_0") == "train"
held_out = train & (train.cum_sum() % 10 == 0)
split = pl.when(held_out).then(pl.lit("validation")).otherwise("split_0").alias("split")
rows.select(pl.exclude("^split_.*$"), split).write_csv("airfoil-rows.csv")
END
numtok encode --scheme digits airfoil-rows.csv --target y

grand() { # grand BUDGET=AMOUNT
    numtok sweep "$here/grand-table.toml" --set "train.$1" --set train.seed="$(list $SEEDS)" \
        ${JOBS:+--jobs "$JOBS"}
}

echo "=== equal samples"
grand steps="$STEPS"
echo "=== equal time"
grand minutes="$MINUTES"
