#!/usr/bin/env bash
# Tables 2 and 3 of Decoding-based Regression at the scale that SCALE names: the runs of the sweep
# file beside it.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

uci decoding-regression-table23.toml --set train.head="$(list $MDN $UD $ND $RIEMANN $POINTWISE)"
