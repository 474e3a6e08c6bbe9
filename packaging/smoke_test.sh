#!/usr/bin/env bash
# Installs the distributions of dist/ into empty environments, and uses them there: the library's wheel and source
# distribution alone, its wheel with the oldest dependencies that pyproject.toml admits, the laboratory's wheel and source
# distribution, and each extra that is given, alone in an environment; those of the laboratory are written lab-EXTRA, and
# "each" stands for all of both.
#   packaging/smoke_test.sh [PYTHON [EXTRA...]]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
shift || true
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp packaging/smoke_test.py "$folder"
"$python" packaging/oldest.py >"$folder/oldest.txt"

try() { # the name of the check, then arguments of pip
    "$python" -m venv "$folder/env"
    "$folder/env/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt "${@:2}"
    (cd "$folder" && "$folder/env/bin/python" smoke_test.py ${1:+"$1"})
    rm -rf "$folder/env"
}

wheel=$(ls dist/bochner-*.whl) lab=$(ls dist/bochner_lab-*.whl)
try "" "$wheel"
try "" "$(ls dist/bochner-*.tar.gz)"
if "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then # newer Pythons need newer dependencies
    try "" "$wheel" -c "$folder/oldest.txt"
fi
try lab "$wheel" "$lab"
try lab "$wheel" "$(ls dist/bochner_lab-*.tar.gz)"
if [ "$*" = each ]; then # but docs and dev, which the tests use
    set -- $("$python" -c '
import tomllib

for prefix, path in (("", "pyproject.toml"), ("lab-", "lab/pyproject.toml")):
    with open(path, "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    print(*(prefix + extra for extra in extras if extra not in ("docs", "dev")))
')
fi
for extra in "$@"; do
    case $extra in
    lab-*) try "$extra" "$wheel" "$lab[${extra#lab-}]" ;;
    *) try "$extra" "$wheel[$extra]" ;;
    esac
done
