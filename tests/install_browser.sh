#!/usr/bin/env bash
# Installs Debian's chromium for the test of the HTML report, where it is missing and can be; says why where it cannot.
set -u
if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then exit 0; fi
if ! command -v apt-get >/dev/null; then echo "no chromium, and no apt-get to install it: the browser test is skipped"; exit 0; fi
if [ "$(id -u)" != 0 ]; then echo "no chromium, and no right to install it: the browser test is skipped"; exit 0; fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
if (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver) >"$log" 2>&1; then
    echo "chromium installed for the browser test"
else
    echo "chromium cannot be installed, so the browser test is skipped: $(tail -n 1 "$log")"
fi
rm -f "$log"
