#!/bin/sh
# Says in one line what is missing on this machine, before anything else is tried.
# Needs nothing but a POSIX shell. With --python it prints the Python 3.11 to use, and nothing else.
set -u

missing=""
advice=""

# need WHAT HOW: one more thing that is missing, and how to get it.
need() {
    missing="${missing:+$missing; }$1"
    advice="${advice:+$advice; }$2"
}

# how WHAT PACKAGES BREW: how to install something on this machine; BREW is the command on a Mac.
how() {
    if command -v apt-get >/dev/null; then
        echo "apt install $2"
    elif [ "$(uname -s 2>/dev/null)" = Darwin ]; then
        echo "$3"
    else
        echo "install $1 (on Debian and Ubuntu: apt install $2)"
    fi
}

python_version() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

# The major version of java or javac: 17 for 'openjdk version "17.0.15"', 8 for 'javac 1.8.0_402'; empty without one.
java_version() {
    "$1" -version 2>&1 |
        sed -n -e 's/^openjdk version "//' -e 's/^java version "//' -e 's/^javac //' -e 's/^1\.//' \
            -e 's/^\([0-9][0-9]*\).*/\1/p' | head -n 1
}

find_python() {
    for name in python3.11 python3 python; do
        if [ "$(python_version "$name")" = "3.11" ]; then
            echo "$name"
            return
        fi
    done
}

check_python() {
    python=$(find_python)
    if [ -z "$python" ]; then
        found=$(python_version python3)
        need "Python 3.11 (found: ${found:-none})" \
            "$(how "Python 3.11" "python3.11 python3.11-venv" "brew install python@3.11")"
    elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        need "the venv module of Python 3.11" "$(how it python3.11-venv "brew reinstall python@3.11")"
    fi
}

# Spark itself looks into JAVA_HOME first, so this does too.
check_jdk() {
    bin="${JAVA_HOME:+$JAVA_HOME/bin/}"
    runtime=$(java_version "${bin}java")
    compiler=$(java_version "${bin}javac")
    if [ "$runtime" != 17 ] || [ "$compiler" != 17 ]; then
        need "a JDK 17 (found: java ${runtime:-none}, javac ${compiler:-none}${JAVA_HOME:+, by JAVA_HOME=$JAVA_HOME})" \
            "$(how "a JDK 17" openjdk-17-jdk-headless "brew install openjdk@17") and let JAVA_HOME or PATH point to it"
    fi
}

check_make() {
    if ! make --version 2>/dev/null | grep -q 'GNU Make'; then
        need "GNU make" "$(how it make "xcode-select --install")"
    fi
}

check_python
check_jdk
check_make
if [ -n "$missing" ]; then
    echo "Millrace cannot start, this machine lacks: $missing. To go on: $advice." >&2
    exit 1
fi
if [ "${1:-}" = "--python" ]; then
    echo "$python"
fi
