#!/bin/sh
# A browser for the tests of the web pages and for the screenshots: Chromium of this machine, or else Playwright's.
# Fails without one, as the tests then do.
set -u
cd "$(dirname "$0")/.."

if command -v chromium >/dev/null; then
    exit 0
fi
# Only a machine that is there for CI gets a package of its system.
if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium && exit 0
fi
if ! .venv/bin/playwright install --only-shell chromium; then
    echo "No browser could be installed: the tests of the web pages will fail." >&2
    echo "Install Chromium (Debian/Ubuntu: apt install chromium), or leave them out: pytest --ignore tests/e2e/pages" >&2
    exit 1
fi
