#!/usr/bin/env bash
# Table 3 of NumGPT: runs numgpt-table3.toml at scale SCALE.
#
#     SCALE=cpu pipelines/numgpt-table3.sh
#
# With CORPUS, it adds models that are pre-trained on this text. scales.sh describes SCALE and all
# variables.
set -euo pipefail
[ "${SCALE:-cpu}" = smoke ] || : "${SEEDS:=0 1 2 3 4}"
. "$(dirname "$0")/scales.sh"
numgpt

: "${SAMPLES:=6850}"
steps=$(steps_for 5512)
numgpt_sweep numgpt-table3.toml --set train.steps="$steps"
if [ -n "${CORPUS:-}" ]; then
    echo "=== pre-trained"
    data=$(numtok gen wordproblems --form generate --answers 10001..inf --rows "$SAMPLES" \
        --split test=0.19533)
    pretrained numgpt/table3 "$data" "$steps" ar --decode free
fi
