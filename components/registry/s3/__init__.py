"""A store in a bucket of S3, or of a server that speaks like it. Loads boto3, so it is imported when it is opened.

- `store` — `S3Store`, which joins the others
- `bucket` — the one place where requests are made
- `retries` — which failures are worth another attempt, and error messages that hold no secret
- `objects` — records and aliases: conditional writes whose outcome is known after a lost answer, too
- `uploads`, `downloads` — files to and from the bucket, several at a time
- `moving` — boto3's transfer manager, as those need it
- `trees` — a folder as a manifest and its files; the cache of what was fetched
- `probe` — does the server honour the conditions that all this stands on?

In the bucket, under the prefix: `objects/<key>`, `blobs/<sha256>` (a file each, shared by all trees that hold it),
`trees/<digest>.json` (a tree's manifest, written last) and, for a moment, `probe/`.

What it needs: s3:ListBucket, s3:GetObject, s3:PutObject, s3:AbortMultipartUpload, and s3:DeleteObject on `probe/*`; on
a server that does not look at checksums also on `blobs/*`, where a file that has just been sent, and has arrived
damaged, is removed again. An upload that fails is aborted; of a process that was killed the parts stay: let the
bucket's lifecycle rule AbortIncompleteMultipartUpload remove them after some days.
"""

from components.registry.s3.store import S3Store

__all__ = ["S3Store"]
