#!/usr/bin/env bash
# Tables 2 and 3 of Decoding-based Regression: runs decoding-regression-table23.toml at scale SCALE.
#
#     SCALE=cpu pipelines/decoding-regression-table23.sh
#
# scales.sh describes SCALE and all variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

uci decoding-regression-table23.toml --set train.head="$(list $MDN $UD $ND $RIEMANN $POINTWISE)"
