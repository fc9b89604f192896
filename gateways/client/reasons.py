"""The plain reason behind a connection that could not be had, below what libraries wrap around it."""

import os
import ssl


def reason_of(fault: BaseException) -> str:
    """Why a connection failed: the system's word, or TLS's; of several attempts, one for each address, the last."""
    cause = fault
    while (behind := _behind(cause)) is not None:
        cause = behind.exceptions[-1] if isinstance(behind, BaseExceptionGroup) else behind
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):  # its errno is none of the system's
        if getattr(cause, "reason", None) == "WRONG_VERSION_NUMBER":
            return "it does not speak TLS there"
        return f"TLS: {getattr(cause, 'reason', None) or cause}"
    number = getattr(cause, "errno", None)
    if isinstance(number, int) and number > 0:
        return os.strerror(number)
    return str(cause) or str(fault) or type(fault).__name__


def _behind(fault: BaseException) -> BaseException | None:
    """What a fault was made of. httpcore raises its own while it handles the cause, and does not name it."""
    return fault.__context__ if type(fault).__module__.startswith("httpcore") else fault.__cause__
