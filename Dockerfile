# What runs Millrace's jobs and its Airflow: the project, its packages, Spark's jars with our log stores among them.
#
#   make image
#   docker run --rm --init -v "$PWD/data:/opt/millrace/data" millrace lakehouse run --interval 2013-01-04
FROM debian:bookworm-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        ca-certificates make openjdk-17-jdk-headless procps python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

# The user of most people's own files, so that a folder of the host can be mounted as `data`.
RUN useradd --create-home --uid 1000 millrace && install --directory --owner millrace /opt/millrace /opt/millrace/data
USER millrace
WORKDIR /opt/millrace

COPY --chown=millrace . .
# The archive of Spark's classes is made here too: a driver in a container starts as soon as one beside it.
RUN PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1 make setup && rm -rf ~/.cache ~/.ivy2* ~/.m2

ENV PATH=/opt/millrace/.venv/bin:$PATH \
    PYTHONPATH=/opt/millrace \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/millrace/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/millrace/plugins \
    AIRFLOW__CORE__LOAD_EXAMPLES=False \
    AIRFLOW__STATE_STORE__CLEAR_ON_SUCCESS=True \
    GX_ANALYTICS_ENABLED=False
VOLUME /opt/millrace/data
CMD ["lakehouse", "--help"]
