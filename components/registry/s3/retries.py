"""Which failures are worth another attempt, how long to wait for it, and what is said when there is none.

What botocore and a server say can hold an access key, a token or a signed URL. So no text of theirs is repeated: an
error consists of the operation, the HTTP status, the code (one word) and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSLError,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError
from s3transfer.exceptions import RetriesExceededError, S3DownloadFailedError, S3ValidationError

from components.attempts import Attempts
from components.errors import EvenkeelError, InputError
from components.registry.base import Unavailable
from components.words import plural

T = TypeVar("T")


class Damaged(Exception):
    """What arrived is not what was stored."""


class GivenUp(Exception):
    """A request failed for a passing reason in all its attempts."""

    def __init__(self, reason: str, made: int) -> None:
        super().__init__(reason)
        self.reason, self.made = reason, made


FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds; see `components.attempts`."""
CREDENTIALS = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    TokenRetrievalError,
    ProfileNotFound,
)
MOVING = (RetriesExceededError, S3DownloadFailedError, S3ValidationError)
"""Of the transfer manager: answers broke off, were of a file that was replaced meanwhile, or of another part."""
WRONG = (Damaged, FlexibleChecksumError)
PASSING = (ConnectionError, HTTPClientError, IncompleteReadError, ResponseParserError, *WRONG, *MOVING)
FAILURES = (BotoCoreError, ClientError, *PASSING)
NEVER_SENT = (EndpointConnectionError, ConnectTimeoutError)
DAMAGED = frozenset({"BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch"})
"""Codes for content without the checksum that it was sent with."""
AGAIN = DAMAGED | {
    "ConditionalRequestConflict",  # 409: another writer is at it
    "OperationAborted",
    "RequestTimeout",  # 400: the server waited for the rest of the request
    "IncompleteBody",
    "SlowDown",
    "TooManyRequests",
}
"""Codes of refusals that say nothing about the request itself. Nor does a 5xx, but for 501."""
DENIED = "the credentials are wrong or lack a right; components/registry/s3/__init__.py lists those that are needed"
REGION = "the bucket is in another region: set registry.region"
HOW = {
    "AccessDenied": DENIED,
    "403": DENIED,
    "NoSuchBucket": "create the bucket, or correct registry.bucket and registry.endpoint_url",
    "InvalidAccessKeyId": "the server does not know the access key that boto3 found (AWS_ACCESS_KEY_ID, a profile ...)",
    "SignatureDoesNotMatch": "the secret key that boto3 found is wrong, or this machine's clock",
    "ExpiredToken": "the session token has expired: log in again",
    "PermanentRedirect": REGION,
    "301": REGION,
    "AuthorizationHeaderMalformed": REGION,
    "NotImplemented": "use a server that knows this request",
    "RequestTimeTooSkewed": "set this machine's clock",
}


@dataclass(frozen=True, slots=True)
class Retries:
    """``attempts`` of a request, all within ``deadline`` seconds."""

    attempts: int
    deadline: float

    def begin(self) -> Attempts:
        """Those of one request, now that its first one begins."""
        return Attempts(FIRST_PAUSE, LONGEST_PAUSE, most=self.attempts, seconds=self.deadline)

    def run(self, operation: str, where: str, send: Callable[[], T]) -> T:
        """What ``send`` returns. It may be called again.

        Raises:
            Unavailable: no attempt succeeded, or the time is up.
            ClientError: the server said no, for a reason that remains; `refusal` makes a message of it.
            InputError: there are no credentials, or no connection can be made for a reason that remains.
        """
        attempts = self.begin()
        while True:
            try:
                return send()
            except GivenUp as error:
                reason, made = error.reason, error.made
                break
            except FAILURES as error:
                if not passing(error):
                    if isinstance(error, ClientError):
                        raise
                    raise _permanent(error, operation, where) from None
                reason, made = word(error), attempts.made
            if not attempts.again():
                break
        raise Unavailable(
            f"{operation}: {reason} after {plural(made, 'attempt')}",
            where=where,
            how="try again; if it lasts, look at the server and the network, or give it more time (registry.transfer)",
        ) from None


def code_of(error: ClientError) -> str:
    """The server's code for what is wrong; the HTTP status where it gave none. Never more than a word."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    return code if re.fullmatch(r"[A-Za-z0-9.]{1,64}", code) else str(_status(error))


def passing(error: Exception) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, ClientError):
        status = _status(error)
        return status == 429 or (status >= 500 and status != 501) or code_of(error) in AGAIN
    return isinstance(error, PASSING) and not isinstance(error, SSLError)


def may_have_succeeded(error: BaseException) -> bool:
    """Whether the request may have succeeded although no answer confirmed it."""
    if isinstance(error, ClientError):
        return _status(error) >= 500
    return not isinstance(error, (*NEVER_SENT, *CREDENTIALS, SSLError))


def refusal(error: ClientError, operation: str, where: str) -> EvenkeelError:
    """A message for a server's refusal, which quotes only its code."""
    code = code_of(error)
    how = HOW.get(code, "look up the code in the server's documentation")
    return InputError(f"the server refuses {operation}: {code} (status {_status(error)})", where=where, how=how)


def _permanent(error: Exception, operation: str, where: str) -> EvenkeelError:
    if isinstance(error, CREDENTIALS):
        return InputError(
            f"no credentials for S3 ({type(error).__name__})",
            where=where,
            how="give them to boto3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the machine's role",
        )
    if isinstance(error, SSLError):
        how = "have its certificate fixed, or name the authority that signed it: AWS_CA_BUNDLE"
        return InputError("the server's certificate is not accepted", where=where, how=how)
    return InputError(
        f"{operation} cannot be sent ({type(error).__name__})", where=where, how="check registry and boto3's own files"
    )


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def word(error: Exception) -> str:
    """What happened, of a failure that may pass."""
    if isinstance(error, ClientError):
        return f"{code_of(error)} (status {_status(error)})"
    if isinstance(error, WRONG):
        return "what arrived is not what was stored"
    return f"no whole answer ({type(error).__name__})"
