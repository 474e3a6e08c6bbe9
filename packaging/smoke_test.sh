#!/usr/bin/env bash
# Installs the distributions of dist/ into empty environments, and uses them there: without names, the library's wheel and
# source distribution alone, its wheel with the oldest dependencies that pyproject.toml admits, and the laboratory's wheel and
# source distribution.  With names of extras, the wheel with each of them, alone in an environment; those of the laboratory
# are written lab-EXTRA, and "each" stands for all of both.  What fails is named at the end.
#   packaging/smoke_test.sh [PYTHON [EXTRA...]]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
shift || true
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp packaging/smoke_test.py "$folder"
"$python" packaging/oldest.py >"$folder/oldest.txt"
failed=()

try() { # the name of the check, then arguments of pip
    rm -rf "$folder/env"
    "$python" -m venv "$folder/env"
    if ! { "$folder/env/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt "${@:2}" &&
        (cd "$folder" && "$folder/env/bin/python" smoke_test.py ${1:+"$1"}); }; then
        failed+=("${*:-alone}")
    fi
}

wheel=$(ls dist/bochner-*.whl) lab=$(ls dist/bochner_lab-*.whl)
if [ $# = 0 ]; then
    try "" "$wheel"
    try "" "$(ls dist/bochner-*.tar.gz)"
    if "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then # newer Pythons need newer dependencies
        try "" "$wheel" -c "$folder/oldest.txt"
    fi
    try lab "$wheel" "$lab"
    try lab "$wheel" "$(ls dist/bochner_lab-*.tar.gz)"
elif [ "$*" = each ]; then
    set -- $("$python" -c '
import tomllib

for prefix, path in (("", "pyproject.toml"), ("lab-", "lab/pyproject.toml")):
    with open(path, "rb") as file:
        print(*(prefix + extra for extra in tomllib.load(file)["project"]["optional-dependencies"]))
')
fi
for extra in "$@"; do
    case $extra in
    lab-*) try "$extra" "$wheel" "$lab[${extra#lab-}]" ;;
    *) try "$extra" "$wheel[$extra]" ;;
    esac
done
if [ ${#failed[@]} -gt 0 ]; then
    printf 'failed: %s\n' "${failed[@]}" >&2
    exit 1
fi
