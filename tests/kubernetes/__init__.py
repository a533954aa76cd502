"""What can be proved of the cluster's objects without a cluster.

- `policy` — what every pod of ours must be: pure functions over manifests, of `k8s/` and of a launcher alike
- `validation` — strict validation: Kubernetes' own schemas, and that of the JobSet CRD (`jobset_schema`)
- `profiles` — runs whose manifests are kept in `golden/`
- `building` — the objects of a kustomization: as our files add up, and as kustomize itself builds them
- `reaching` — who may reach whom, by a reading of network policies
- `dockerfiles` — the instructions of an image definition
"""
