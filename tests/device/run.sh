#!/usr/bin/env bash
# Shows on this host's GPU what Solstice promises there (README.md). Ends with 0 if every part that ran is right.
#
#   tests/device/run.sh [--out FOLDER] [--only PART[,PART]] [--skip PART[,PART]] [--device emulator] [--help]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH=$here PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
exec python3 -m device_tests "$@"
