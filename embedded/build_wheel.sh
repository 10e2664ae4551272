#!/bin/sh
# The wheel of the last commit, in dist. Who installs it needs no compiler of Java, and reads the documentation in the web UI.
set -eu
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git archive HEAD pyproject.toml README.md LICENSE NOTICE include spark_jobs plugins docs | tar -x -C "$scratch"
mv "$scratch/docs" "$scratch/plugins/lakehouse_airflow/docs"
mkdir "$scratch/spark_jobs/millrace_spark/jars"
cp .jars/millrace-*.jar "$scratch/spark_jobs/millrace_spark/jars"
.venv/bin/uv build --wheel --quiet --out-dir dist "$scratch"
echo "dist/$(ls -t dist | grep '\.whl$' | head -n 1)"
