#!/bin/sh
# A browser for the tests of the web pages and for the screenshots: Chromium of this machine, or else Playwright's.
# Fails without one.
set -u
cd "$(dirname "$0")/.."

if command -v chromium >/dev/null; then
    exit 0
fi
if ! .venv/bin/playwright install --only-shell chromium; then
    echo "No browser could be installed: the tests of the web pages are skipped, or fail where CI=true." >&2
    echo "Install Chromium (Debian/Ubuntu: apt install chromium)." >&2
    exit 1
fi
