#!/usr/bin/env bash
# Installs the wheel of dist/ into empty environments, alone and with each extra that is given, and runs the self-test there.
#   packaging/smoke_test.sh [PYTHON [EXTRA...]]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
shift || true
wheel=$(ls dist/bochner-*.whl)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for extra in "" "$@"; do
    "$python" -m venv "$folder/env"
    "$folder/env/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt "$wheel${extra:+[$extra]}"
    (cd "$folder" && "$folder/env/bin/bochner" info --dimension 8 --rows 8 | tail -n 1)
    (cd "$folder" && "$folder/env/bin/bochner" recommend wine --features 16 >/dev/null)
    echo "bochner${extra:+[$extra]}: installed and tested"
    rm -rf "$folder/env"
done
