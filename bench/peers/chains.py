"""Conversations signed ahead: what every peer is given, so that no run pays for signing.

`python -m bench.peers.chains FILE --conversations N --length N` writes them. Each is a chain of wire.md from its CALL
on: both parties in turn, about 600 bytes an envelope, keys derived from the conversation's number.
"""

import argparse
import hashlib
import itertools
import secrets
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from nacl.signing import SigningKey

from bench.kit.parties import codes
from broker.wire.chain import chain_next, chain_start
from broker.wire.envelope import bootstrap, build

PROCESSES: Final = 2
QUOTE: Final = {
    "ccy": "EURUSD",
    "legs": [{"near": "2027-01-15", "far": "2027-04-15", "side": "buy", "notional": "5000000"}],
    "memo": "firm for the stated size, subject to the usual credit line between the desks",
    "price": "1.08452",
    "settle": "T+2",
    "venue": "bilateral",
}
"""A body that makes an envelope of about 600 bytes."""


class Chain(msgspec.Struct, frozen=True, array_like=True):
    """One conversation: envelope n is `texts[n]`, canonical, with `sigs[n]` and `hashes[n]`, both in hex.

    Even n are from the caller, `seeds[0]`, odd ones from the desk called. `codes` are the desks of both.
    """

    conv: str
    seeds: tuple[bytes, bytes]
    pks: tuple[str, str]
    codes: tuple[str, str]
    texts: list[bytes]
    sigs: list[str]
    hashes: list[str]


def seed_of(party: int) -> bytes:
    """The secret of party 2k, who calls in conversation k, or 2k + 1, who is called: 32 bytes."""
    return hashlib.sha256(b"bench party %d" % party).digest()


def sign_chain(number: int, length: int, ts: int) -> Chain:
    """Conversation `number`, with a new random conv, `length` envelopes, all stamped with `ts` (Unix seconds)."""
    seeds = (seed_of(2 * number), seed_of(2 * number + 1))
    keys = tuple(SigningKey(seed) for seed in seeds)
    caller, callee = (bytes(key.verify_key).hex() for key in keys)
    desks = itertools.islice(codes(), 2 * number, 2 * number + 2)
    caller_code, called_code = desks
    conv = secrets.token_hex(8)
    hash_ = chain_start(conv)
    texts: list[bytes] = []
    sigs: list[str] = []
    hashes: list[str] = []
    for n in range(length):
        kind, body = (
            ("CALL", {"code_from": caller_code, "code_to": called_code}) if n == 0 else ("QUOTE", QUOTE)
        )
        text = build(
            conv=conv,
            n=n,
            type="PICKUP" if n == 1 else kind,
            sender=callee if n % 2 else caller,
            to=caller if n % 2 else callee,
            ts=ts,
            prev_sig=sigs[-1] if n else bootstrap(conv),
            body={**body, "seq": str(n)},
        )
        sig = keys[n % 2].sign(text).signature.hex()
        hash_ = chain_next(hash_, sig) if n else hash_
        texts.append(text)
        sigs.append(sig)
        hashes.append(hash_.hex())
    return Chain(conv, seeds, (caller, callee), (caller_code, called_code), texts, sigs, hashes)


def write_chains(file: Path, conversations: int, length: int) -> None:
    """Sign in PROCESSES processes, and write all chains to `file`."""
    sign = partial(sign_chain, length=length, ts=int(time.time()))
    with ProcessPoolExecutor(PROCESSES) as pool:
        chains = list(pool.map(sign, range(conversations)))
    file.write_bytes(msgspec.msgpack.encode(chains))


def read_chains(file: Path) -> list[Chain]:
    """What write_chains wrote."""
    return msgspec.msgpack.decode(file.read_bytes(), type=list[Chain])


def main(arguments: list[str]) -> int:
    """The command; exit code 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.chains")
    parser.add_argument("file", type=Path)
    parser.add_argument("--conversations", type=int, default=64)
    parser.add_argument("--length", type=int, required=True)
    options = parser.parse_args(arguments)
    write_chains(options.file, options.conversations, options.length)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
