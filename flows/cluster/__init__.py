"""Runs on a Kubernetes cluster: `runs` — their status, logs and end; `dry_run` — the manifests of a run, without
creating anything."""
