#!/usr/bin/env bash
# Clones the repository, and tries targets of make there, each from an environment that is empty: what a newcomer does.
# The targets are small ones of their kind: one suite of `bench`, one file of `test`, few calls of `fuzz`.
#   packaging/fresh_clone.sh [TARGET...]          (all by default)
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git clone --quiet . "$folder/bochner"
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(demo lint docs bench fuzz test thorough package clean)
for target in "${targets[@]}"; do
    rm -rf "$folder/bochner/.venv"
    echo "make $target"
    make -C "$folder/bochner" "$target" SUITE=optimize TESTS=tests/test_import.py FUZZ=10 >"$folder/log" 2>&1 || {
        status=$?
        tail -40 "$folder/log"
        echo "make $target failed in a fresh clone" >&2
        exit "$status"
    }
done
echo "every target works in a fresh clone: ${targets[*]}"
