"""Networks and clients that mean harm, and more work than the broker can do (wire.md, Limits, Streams, Refusals)."""

REQUIREMENTS: dict[str, str] = {
    "faults.overload": "new envelopes that waited too long are answered overloaded with a time to wait; what is taken "
    "is in time; an END is taken and a replay answered all the same, and a malformed one is told so",
    "faults.overload-again": "an envelope that was refused as overloaded may be sent again identically",
    "faults.overload-ends": "when the load has ended the broker takes everything again",
    "faults.half-open": "thousands of connections that say nothing leave bystanders, memory and logs alone, "
    "and their places come free",
    "faults.slow-request": "a head or body that comes a byte at a time is ended in time, TLS handshakes too",
    "faults.endless-frames": "fragments, small frames and pings without end cost their sender alone its connection "
    "or its speed",
    "faults.deaf-reader": "who never reads what it asks for is cut in time, and holds a bounded amount of memory",
    "faults.reset": "a client that resets its connection at any moment costs nobody else anything",
    "faults.resume-storm": "a turn of the loop reads a page for those that catch up; who is near does not wait",
    "faults.resume-no-gap": "many clients that resume at once see no gap, and no event twice",
}
