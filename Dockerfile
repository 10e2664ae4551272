# What runs Millrace's jobs, its Airflow and its Spark: the project, its packages, Spark's jars with our log stores
# among them. docker-compose.yaml starts all services of our own from it.
#
#   make image
#   docker run --rm --init -v "$PWD/demo/data:/opt/millrace/demo/data" millrace lakehouse run --interval 2013-01-04
ARG MILLRACE_BASE_IMAGE=debian:bookworm-20260824-slim@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171

FROM ${MILLRACE_BASE_IMAGE} AS build
# A slim image has no manual pages, and Java's package wants the folder.
RUN mkdir --parents /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes --no-install-recommends binutils ca-certificates openjdk-17-jdk-headless \
        python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
# The whole JDK, compressed to half of its size.
RUN jlink --module-path "$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")/jmods" \
        --add-modules ALL-MODULE-PATH --compress=2 --strip-java-debug-attributes --no-header-files --no-man-pages \
        --output /opt/java \
    && cp --dereference /etc/ssl/certs/java/cacerts /opt/java/lib/security/cacerts \
    && /opt/java/bin/java -Xshare:dump

WORKDIR /opt/millrace
# Neither the tools and tests of a developer, nor what only the local stack and the demo use.
ENV JAVA_HOME=/opt/java \
    PATH=/opt/millrace/.venv/bin:/opt/java/bin:$PATH \
    PACKAGES=/opt/millrace/.venv/lib/python3.11/site-packages \
    SYNC="sync --frozen --no-dev --group image" \
    UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never
COPY pyproject.toml uv.lock embedded/uv_requirement.py ./
RUN python3 -m venv /opt/uv \
    && python3 uv_requirement.py uv.lock > /tmp/uv.txt \
    && /opt/uv/bin/pip install --quiet --no-cache-dir --require-hashes --requirement /tmp/uv.txt \
    && /opt/uv/bin/uv $SYNC --no-install-project
# What no run loads: tests, examples, Spark's Scala shell with its own copy of the client, the native libraries of other
# systems, the state store of streaming queries, Arrow's network protocol, the symbol tables of Python's extensions.
RUN cd "$PACKAGES" \
    && rm -r pandas/tests pyarrow/tests pyarrow/include pyarrow/*flight*.so* pyspark/examples pyspark/data \
        pyspark/jars/connect-repl pyspark/jars/rocksdbjni-*.jar pyspark/jars/*-osx-*.jar pyspark/jars/*-windows-*.jar \
    && find scipy -type d -name tests -prune -exec rm -r {} + \
    && find . -name '*.cpython-311-*.so' -exec strip --strip-unneeded {} + \
    && strip --strip-unneeded pyarrow/*.so*

# The archive of Spark's classes is made here too: a driver in a container starts as soon as one beside it.
COPY include include
COPY plugins plugins
COPY spark_jobs spark_jobs
COPY LICENSE README.md ./
RUN /opt/uv/bin/uv $SYNC && lakehouse jars --into .jars

FROM ${MILLRACE_BASE_IMAGE}
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates procps python3 \
    && rm -rf /var/lib/apt/lists/*

# The user of most people's own files, so that a folder of the host can be mounted as `data`. A volume that is mounted
# at one of these folders for the first time belongs to this user, too.
RUN useradd --create-home --uid 1000 millrace \
    && install --directory --owner millrace --group millrace /opt/millrace /opt/millrace/demo /opt/millrace/demo/data \
    && install --directory --owner millrace --group millrace --mode 0700 \
        /var/lib/millrace /var/lib/millrace/logs /var/lib/millrace/objects /var/lib/millrace/runs /var/lib/millrace/spark \
    && install --directory --owner millrace --group millrace \
        /run/millrace /run/millrace/airflow /run/millrace/cluster /run/millrace/connect /run/millrace/database \
        /run/millrace/lakehouse /run/millrace/store /run/millrace/users
WORKDIR /opt/millrace
COPY --from=build /opt/java /opt/java
COPY --from=build /opt/millrace/.venv .venv
COPY --from=build /opt/millrace/.jars .jars
COPY . .
# In the image the demo is a whole project, with all its DAG files.
RUN cp dags/*.py demo/dags
# Containers may run with a read-only file system, where Python cannot save its bytecode.
RUN .venv/bin/python -m compileall -q containers demo embedded include plugins races spark_jobs
USER millrace

ENV JAVA_HOME=/opt/java \
    PATH=/opt/millrace/.venv/bin:/opt/java/bin:$PATH \
    PYTHONPATH=/opt/millrace \
    LAKEHOUSE_PROJECT=/opt/millrace/demo \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/millrace/demo/dags \
    AIRFLOW__CORE__LOAD_EXAMPLES=False \
    GX_ANALYTICS_ENABLED=False
VOLUME /opt/millrace/demo/data
CMD ["lakehouse", "--help"]
