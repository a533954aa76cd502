"""On a GPU: `make test-gpu`. Skipped, with the reason, where torch reaches none.

They need torch, transformers and small wheels alone; `needs` says which are missing. What is compared is computed
twice: by the code here, and by plain PyTorch or on the CPU.
"""
