#!/usr/bin/env bash
# Table 2 of NumGPT: runs numgpt-table2.toml at scale SCALE, and a BiGRU on the same words.
#
#     SCALE=cpu pipelines/numgpt-table2.sh
#
# With CORPUS, it adds models that are pre-trained on this text.
#
#   NUMERACY        Numeracy-600K as a file, folder or URL; otherwise it is downloaded
#   ASKED           number of test rows (default 20,000; always 100,000 at gpu and paper scale)
#
# scales.sh describes SCALE and all other variables.
set -euo pipefail
[ "${SCALE:-cpu}" = smoke ] || : "${SEEDS:=0 1 2 3 4}"
. "$(dirname "$0")/scales.sh"
numgpt

[ -z "$EPOCHS" ] || EPOCHS=5 ASKED=100000
: "${ASKED:=20000}"
data=$(numtok fetch numeracy600k ${NUMERACY:+--from "$NUMERACY"})
steps=$(steps_for 500000)
table2() {
    SAMPLES='' numgpt_sweep numgpt-table2.toml --set data="$data" --set train.steps="$steps" \
        --set eval.limit="$ASKED" "$@"
}
table2
echo "=== BiGRU"
table2 --set encode.scheme=digits --set train.preset=bigru --set train.objective=classify \
    --set train.lr=5e-3
if [ -n "${CORPUS:-}" ]; then
    echo "=== pre-trained"
    TOKENIZER=bpe:8000 pretrained numgpt/table2 "$data" "$steps" classify --limit "$ASKED"
fi
