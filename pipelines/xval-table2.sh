#!/usr/bin/env bash
# Table 2 of xVal at the scale that SCALE names: the runs of xval-table2.toml.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

sweep xval-table2.toml --set gen.digits="$(list ${DIGITS:-3 4 5})" --set train.steps="$STEPS"
