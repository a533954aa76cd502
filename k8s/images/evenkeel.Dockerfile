# Two images with the same packages, those of constraints.txt:
#   learner        learner pods. Their code is the run's own workspace, so that a change of code needs no image;
#                  the image has `components` for what brings that workspace into the pod.
#   orchestrator   flow runs: the same, Git, and the project as it is committed.
# `make images` builds both. Python's digest is that of an index of all architectures. Debian's packages are the ones of the
# day: what a cluster runs is said by the digest of what was pushed. No compiler comes in. Both work with a read-only root and
# HOME=/tmp, as the user that the manifests name.
FROM python:3.11.15-slim-bookworm@sha256:d29f48a31a8b408ed19272ca1e7b10ebae13b240a27e862d3d4217c528e2e0c3 AS base
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# tini: its child may end processes without reaping them, and a shell that forgets to pass SIGTERM on would cost the checkpoint.
# It passes signals to its child alone (no -g): what becomes of the others is for the run or the flow run to say.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/*

FROM base AS packages
# PyTorch's index of the builds that the machines need, where it is not the package index in use; pip prefers a build with a
# local version.
ARG TORCH_INDEX
ARG CONSTRAINTS
WORKDIR /build
COPY constraints.txt pyproject.toml ./
# A wrong CONSTRAINTS would let pods believe in packages that they do not have.
RUN echo "$CONSTRAINTS  constraints.txt" | sha256sum --check --strict
RUN python -m venv /opt/venv \
    && python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" > wanted.txt \
    && /opt/venv/bin/pip install ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} --constraint constraints.txt --requirement wanted.txt

# The project out of the context's Git, and so without what is not committed, the remotes of who builds, and old branches.
FROM base AS project
RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*
COPY .git /context/.git
RUN git clone --quiet --no-local --single-branch file:///context/.git /opt/evenkeel \
    && git -C /opt/evenkeel remote remove origin

FROM base AS learner
ARG CONSTRAINTS
# NVIDIA's runtime gives a container its devices and driver by these; without GPUs they mean nothing.
ENV EVENKEEL_IMAGE_CONSTRAINTS=$CONSTRAINTS HOME=/tmp PYTHONPATH=/opt/evenkeel \
    NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=packages /opt/venv /opt/venv
COPY --from=project /opt/evenkeel/components /opt/evenkeel/components
USER 10001:10001
WORKDIR /work
ENTRYPOINT ["tini", "--"]
CMD ["python", "-m", "components", "--help"]

FROM base AS orchestrator
ARG CONSTRAINTS
ENV EVENKEEL_IMAGE_CONSTRAINTS=$CONSTRAINTS HOME=/tmp PYTHONPATH=/opt/evenkeel DVC_NO_ANALYTICS=1 DO_NOT_TRACK=1
RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*
COPY --from=packages /opt/venv /opt/venv
COPY --from=project --chown=10001:10001 /opt/evenkeel /opt/evenkeel
RUN printf '#!/opt/venv/bin/python\nfrom flows.cli import main\nmain()\n' > /usr/local/bin/evenkeel \
    && chmod 0755 /usr/local/bin/evenkeel
USER 10001:10001
WORKDIR /work
ENTRYPOINT ["tini", "--"]
CMD ["evenkeel", "--help"]
