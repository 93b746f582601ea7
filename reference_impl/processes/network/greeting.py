"""How two processes of a run recognise each other before either reads a frame: by the run's secret.

Any program of the machine can connect to a port of the loopback.  So the side that accepts a connection first sends a
number, drawn for this connection.  The side that has dialled answers with its proof, a keyed digest (HMAC, RFC 2104) of
that number; then the accepting side sends its own proof.  Only a process that has the secret can make a proof.  A proof
that was overheard proves nothing on another connection, and the secret itself is never sent.  Proofs are compared in
constant time.  Sans-IO: nothing here reads or writes.
"""

from __future__ import annotations

import hmac
import secrets

SECRET_BYTES = 32
CHALLENGE_BYTES = 16
PROOF_BYTES = 16
_DIALLED, _ACCEPTED = b"dialled ", b"accepted "


class ForeignPeer(Exception):
    """The other end does not know the run's secret."""


def new_secret() -> bytes:
    """A secret for the processes of one run."""
    return secrets.token_bytes(SECRET_BYTES)


def _proof(secret: bytes, side: bytes, challenge: bytes) -> bytes:
    return hmac.digest(secret, side + challenge, "sha256")[:PROOF_BYTES]


class _Proof:
    """The bytes that the other side has to send, as they come in, in pieces of any size."""

    def __init__(self, expected: bytes) -> None:
        self._expected = expected
        self._received = b""

    @property
    def missing(self) -> int:
        """How many bytes are still to come."""
        return len(self._expected) - len(self._received)

    def take(self, data: bytes) -> bool:
        """Take at most `missing` bytes more; whether that is all.  Raises ForeignPeer for a proof that is wrong.

        A proof is compared when it is complete: an earlier answer would let it be guessed byte by byte.
        """
        self._received += data
        if self.missing:
            return False
        self.end()
        return True

    def end(self) -> None:
        """No more bytes will come; raises ForeignPeer if those that have come are not the beginning of a proof."""
        if not hmac.compare_digest(self._received, self._expected[: len(self._received)]):
            raise ForeignPeer("it does not know the run's secret")


class Accepting(_Proof):
    """The side that was dialled: it sends `challenge`, takes the other's proof, then sends `proof`."""

    def __init__(self, secret: bytes) -> None:
        self.challenge = secrets.token_bytes(CHALLENGE_BYTES)
        self.proof = _proof(secret, _ACCEPTED, self.challenge)
        super().__init__(_proof(secret, _DIALLED, self.challenge))


class Dialling:
    """The side that has dialled: it takes a challenge, sends `proof`, then takes the other's proof."""

    def __init__(self, secret: bytes) -> None:
        self.proof = b""
        """empty until the challenge has come; from then on frames may follow it"""
        self._secret = secret
        self._challenge = b""
        self._theirs: _Proof | None = None

    @property
    def missing(self) -> int:
        """How many bytes are still to come of the challenge or the proof."""
        return CHALLENGE_BYTES - len(self._challenge) if self._theirs is None else self._theirs.missing

    def take(self, data: bytes) -> bool:
        """At most `missing` bytes more; whether the other side has proved itself.  Raises ForeignPeer."""
        if self._theirs is not None:
            return self._theirs.take(data)
        self._challenge += data
        if not self.missing:
            self.proof = _proof(self._secret, _DIALLED, self._challenge)
            self._theirs = _Proof(_proof(self._secret, _ACCEPTED, self._challenge))
        return False
