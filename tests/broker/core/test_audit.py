"""The form of an audit event."""

import msgspec

from broker.core.audit import AuditEvent


def test_what_says_nothing_is_left_out() -> None:
    event = AuditEvent(at=1, actor="operator", kind="purge_expired_unclaimed")
    assert msgspec.json.encode(event) == b'{"at":1,"actor":"operator","kind":"purge_expired_unclaimed"}'
