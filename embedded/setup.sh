#!/bin/sh
# The virtual environment from uv.lock, and the jars. Quick when there is nothing to do.
set -eu
cd "$(dirname "$0")/.."

python=$(sh embedded/check_machine.sh --python)
stamp=".venv/set-up"

# Whatever set-up depends on; the folder's own path too, since a virtual environment cannot be moved.
fingerprint() {
    pwd
    cksum embedded/setup.sh uv.lock pyproject.toml include/millrace/jars/*.* spark_jobs/millrace_spark/class_training.py \
        spark_jobs/millrace_spark/*/src/io/millrace/*/*.java
}

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint)" ]; then
    exit 0
fi

uv_version=$(sed -n '/^name = "uv"$/{n;s/^version = "\(.*\)"$/\1/p;}' uv.lock)
rm -f "$stamp"
if [ "$(.venv/bin/uv --version 2>/dev/null | cut -d ' ' -f 2)" != "$uv_version" ]; then
    echo "set-up 1/3: virtual environment in .venv, by $python"
    "$python" -m venv --clear .venv
    .venv/bin/python embedded/uv_requirement.py uv.lock \
        | .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement /dev/stdin
fi
echo "set-up 2/3: packages of uv.lock (1.4 GB the first time), and their bytecode"
# Settings of another project must not lead uv elsewhere.
unset VIRTUAL_ENV UV_PROJECT_ENVIRONMENT UV_PROJECT UV_PYTHON
# Compiled now: where Python may not save bytecode, each process would compile thousands of modules anew.
UV_PYTHON_DOWNLOADS=never .venv/bin/uv sync --frozen --quiet --compile-bytecode
.venv/bin/python -m compileall -q containers demo embedded include plugins spark_jobs
echo "set-up 3/3: Spark's jars in .jars, and an archive of Spark's classes (190 MB), so that each driver starts sooner"
.venv/bin/lakehouse jars --into .jars
fingerprint > "$stamp"
