# vLLM's servers on processors: constraints-vllm.txt over Python (`make images`). The code that makes them take weights,
# components/rollout/servers/plugin, comes with the run's workspace.
FROM python:3.11.15-slim-bookworm@sha256:d29f48a31a8b408ed19272ca1e7b10ebae13b240a27e862d3d4217c528e2e0c3 AS base
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# vLLM's engine is a process of its own, which tini reaps if the server dies before it; libnuma1: its CPU kernels load it.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini libnuma1 \
    && rm -rf /var/lib/apt/lists/*

FROM base AS packages
# PyTorch's index of CPU builds, where the package index in use gives those with CUDA.
ARG TORCH_INDEX
ARG CONSTRAINTS
WORKDIR /build
COPY constraints-vllm.txt ./
RUN echo "$CONSTRAINTS  constraints-vllm.txt" | sha256sum --check --strict
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-deps ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} --requirement constraints-vllm.txt \
    && /opt/venv/bin/python -c "import torch"

FROM base AS cpu
ARG CONSTRAINTS
ENV EVENKEEL_IMAGE_CONSTRAINTS=$CONSTRAINTS HOME=/tmp VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
COPY --from=packages /opt/venv /opt/venv
USER 10001:10001
WORKDIR /work
ENTRYPOINT ["tini", "--"]
CMD ["python", "-m", "vllm.entrypoints.openai.api_server", "--help"]
