#!/usr/bin/env bash
# Table 2 of xVal: runs xval-table2.toml at scale SCALE.
#
#     SCALE=cpu pipelines/xval-table2.sh
#
# scales.sh describes SCALE and all variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

sweep xval-table2.toml --set gen.digits="$(list ${DIGITS:-3 4 5})" --set train.steps="$STEPS"
