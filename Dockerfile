# Two stages: what builds stays behind. Everything that is installed is checked against the hashes of a lock.
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
# Compiled files that name a hash, not a time: what is built twice is the same.
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never PYC_INVALIDATION_MODE=UNCHECKED_HASH
WORKDIR /src
COPY requirements-uv.lock requirements-image.lock ./
RUN python3 -m venv /opt/uv \
 && /opt/uv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-uv.lock \
 && /opt/uv/bin/uv venv --python python3 /opt/safe \
 && /opt/uv/bin/uv pip install --python /opt/safe --no-deps --require-hashes -r requirements-image.lock
COPY pyproject.toml README.md LICENSE ./
COPY safe_core safe_core
COPY safe_scorer safe_scorer
COPY consumer consumer
# hatchling came with the lock, with what it needs alone, and goes again; so does what no worker
# ever runs, and a note of when it was installed.
RUN /opt/uv/bin/uv pip install --python /opt/safe --no-deps --no-build-isolation . \
 && /opt/uv/bin/uv pip uninstall --python /opt/safe hatchling pathspec pluggy tomlkit trove-classifiers
RUN find /opt/safe/bin -type f ! -name safe -delete \
 && find /opt/safe -name uv_cache.json -delete \
 && sed -i /uv_cache.json/d /opt/safe/lib/python3*/site-packages/safe_scorer-*.dist-info/RECORD

FROM ${BASE}
ARG BASE
ARG VERSION=0.1.0
ARG REVISION=unknown
# Where this repository is, and when the image was built (RFC 3339): whoever builds it knows.
ARG SOURCE=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="SAFE" \
      org.opencontainers.image.description="Scores LLM outputs for clinical review by SAFE v0, from Kafka, exactly once." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.url="${SOURCE}" \
      org.opencontainers.image.documentation="${SOURCE}" \
      org.opencontainers.image.base.name="${BASE}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/safe /opt/safe
# Threads that parse leave holes in memory: two arenas are enough for them.
ENV PATH="/opt/safe/bin:${PATH}" \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MALLOC_ARENA_MAX=2 \
    SAFE_V0_HTTP_ADDRESS=0.0.0.0:9464
# By number, so that Kubernetes can see that it is not root. It writes nowhere.
USER 10001:10001
WORKDIR /tmp
EXPOSE 9464
# Alive, not ready: an outage of the brokers is no reason to start anew. Without urllib, which would ask a proxy.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=6 CMD ["python3", "-c", \
    "import http.client as h, os, sys; c = h.HTTPConnection('127.0.0.1', int(os.environ['SAFE_V0_HTTP_ADDRESS'].rpartition(':')[2]), timeout=4); c.request('GET', '/livez'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["safe"]
CMD ["worker"]
