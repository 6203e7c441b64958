#!/usr/bin/env bash
# The grand table: every encoding on eight data sets, at equal samples and at equal time.
#
# On two cores with JOBS=2 some six hours at equal samples, and two and a half at equal time, while
# nothing else should run; SCALE=smoke tries it out. ERA5 is where the weather is from (a name that
# `numtok fetch era5` knows, or a copy), UCI a folder with a copy of uci_datasets, so that nothing is
# downloaded. STEPS and MINUTES are the budgets of a training. What was made is found again, so a run
# that was stopped goes on; airfoil's rows are written into this folder.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
given=${STEPS:-} # others have more
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
# The first fold, with every tenth training row for validation.
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
