"""What `evenkeel doctor` says of a bucket. It is written to, and cleaned again."""

from __future__ import annotations

from components.checks import Check
from components.errors import EvenkeelError
from components.registry.s3.bucket import Bucket
from components.registry.s3.probe import HOW, probe


def examined(name: str, bucket: Bucket, address: str, otherwise: str) -> Check:
    """Whether files and records can be kept in it.

    Args:
        name: of the check.
        address: of the bucket, for people.
        otherwise: what to do with a server that cannot; the same as `HOW`, in the words of the setting.
    """
    try:
        found = probe(bucket)
    except EvenkeelError as error:
        return Check(name, "fail", f"{error.what} ({error.where})", error.how or "")
    if found.missing:
        return Check(name, "fail", f"{address}: {'; '.join(found.missing)}", otherwise)
    if not found.checksums:
        finding = f"{address}: the server does not look at checksums, so all that is sent is read again"
        return Check(name, "warn", finding, "use a server that does, or expect twice the traffic")
    if found.left:
        fix = "allow s3:DeleteObject on probe/*, or let a lifecycle rule remove what is there"
        return Check(name, "warn", f"{address}: {found.left} could not be removed again", fix)
    return Check(name, "ok", f"{address}: conditional writes and checksums are honoured")


__all__ = ["HOW", "examined"]
