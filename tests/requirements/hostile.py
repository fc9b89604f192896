"""Networks and clients that mean harm, and more work than the broker can do (wire.md, Limits, Streams, Refusals)."""

REQUIREMENTS: dict[str, str] = {
    "faults.overload": "new envelopes that waited too long are answered overloaded with a time to wait; what is taken "
    "is in time; an END is taken and a replay answered all the same, and a malformed one is told so",
    "faults.overload-again": "an envelope that was refused as overloaded may be sent again identically",
    "faults.overload-ends": "when the load has ended the broker takes everything again",
    "faults.resume-storm": "many clients that resume at once see no gap, and each turn of the loop reads a bounded "
    "number of pages for them",
}
