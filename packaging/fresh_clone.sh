#!/usr/bin/env bash
# Clones the repository, and tries targets of make there from empty environments: what a newcomer does.  Targets that install
# the same share an environment, once it is known that each of them would install it.  They are small ones of their kind: one
# suite of `bench`, one file of `test`, few calls of `fuzz`.
#   packaging/fresh_clone.sh [TARGET...]          (all by default)
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git clone --quiet . "$folder/bochner"
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(demo bench docs lint fuzz test thorough package clean)
small=(SUITE=optimize TESTS=tests/test_import.py FUZZ=10 INTERRUPTIONS=10 FLIPS=10)

installed() { # what a target would install into an empty environment
    rm -rf "$folder/empty"
    make -C "$folder/bochner" --dry-run VENV="$folder/empty" "$1" "${small[@]}" | grep "pip install" || true
}

last=""
for target in "${targets[@]}"; do
    needs=$(installed "$target")
    [ "$needs" = "$last" ] || rm -rf "$folder/bochner/.venv"
    last=$needs
    echo "make $target"
    make -C "$folder/bochner" "$target" "${small[@]}" >"$folder/log" 2>&1 || {
        status=$?
        # a benchmark that misses a time has been installed and has run: a busy machine is no fault of the clone
        [ "$target" != bench ] || ! grep -q "Error 1$" "$folder/log" || ! grep -q "goal" "$folder/log" || continue
        tail -40 "$folder/log"
        echo "make $target failed in a fresh clone" >&2
        exit "$status"
    }
done
echo "every target works in a fresh clone: ${targets[*]}"
