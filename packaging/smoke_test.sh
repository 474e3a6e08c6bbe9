#!/usr/bin/env bash
# Installs the distributions of dist/ into empty environments, and uses them there: the wheel and the source distribution
# alone, the wheel with the oldest dependencies that pyproject.toml admits, and with each extra that is given.
#   packaging/smoke_test.sh [PYTHON [EXTRA...]]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
shift || true
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp packaging/smoke_test.py "$folder"
"$python" packaging/oldest.py >"$folder/oldest.txt"

try() { # what to install, the extra to check, further arguments of pip
    "$python" -m venv "$folder/env"
    "$folder/env/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt "${@:3}" "$1"
    (cd "$folder" && "$folder/env/bin/python" smoke_test.py ${2:+"$2"})
    rm -rf "$folder/env"
}

wheel=$(ls dist/bochner-*.whl)
try "$wheel" ""
try "$(ls dist/bochner-*.tar.gz)" ""
if "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then # newer Pythons need newer dependencies
    try "$wheel" "" -c "$folder/oldest.txt"
fi
for extra in "$@"; do
    try "$wheel[$extra]" "$extra"
done
