#!/usr/bin/env bash
# Table 1 of NumGPT: runs numgpt-table1.toml at scale SCALE, one task after the other, with a table
# for each budget.
#
#     SCALE=cpu pipelines/numgpt-table1.sh
#
# With CORPUS, it adds the lower half of the table: models that are pre-trained on this text. With
# OUT=DIR, it draws accuracy by samples seen. scales.sh describes SCALE and all variables.
set -euo pipefail
[ "${SCALE:-cpu}" = smoke ] || : "${SEEDS:=0 1 2 3 4}"
[ "${SCALE:-cpu}" != cpu ] || : "${SHARES:=4 2 1}"
. "$(dirname "$0")/scales.sh"
numgpt

read -r -a shares <<< "$SHARES"
for task in ${JUDGED:-measurement comparison wordproblems}; do
    rows=32000
    [ "$task" != measurement ] || rows=16000
    steps=$(steps_for $rows)
    for share in "${shares[@]}"; do
        echo "=== $task, 1/$share of $steps steps"
        numgpt_sweep numgpt-table1.toml --set gen.task="$task" --set train.steps=$((steps / share))
    done
    if [ -n "${CORPUS:-}" ]; then
        echo "=== $task, pre-trained"
        data=$(numtok gen "$task" ${SAMPLES:+--rows "$SAMPLES"})
        pretrained numgpt/table1 "$data" "$steps" classify
    fi
    if [ -n "${OUT:-}" ]; then
        budgets=()
        for share in "${shares[@]}"; do
            budgets+=($((steps / share)))
        done
        mkdir -p "$OUT"
        # shellcheck disable=SC2046 - several REFs
        numtok figure lines $(numgpt_sweep numgpt-table1.toml --set gen.task="$task" \
            --set train.steps="[$(IFS=, && echo "${budgets[*]}")]" --json | reports) \
            --x budget_steps --metric accuracy --out "$OUT/numgpt-table1-$task.png"
    fi
done
