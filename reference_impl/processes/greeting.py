"""How two processes of a run know each other before either hears a frame: by the run's secret.

Any program of the machine can connect to a port of the loopback.  So whoever
accepts a connection says a number first, drawn for it; whoever dialled answers
with its proof, a keyed digest (HMAC, RFC 2104) of that number, and is then shown
the other side's.  Only who has the secret can make one, nothing that was
overheard proves anything to another connection, and the secret itself is never
sent.  Proofs are compared in constant time.

Sans-IO: nothing here reads or writes.
"""

from __future__ import annotations

import hmac
import secrets

SECRET_BYTES = 32
CHALLENGE_BYTES = 16
PROOF_BYTES = 16
_DIALLED, _ACCEPTED = b"dialled ", b"accepted "


class ForeignPeer(Exception):
    """Whoever is at the other end does not know the run's secret."""


def new_secret() -> bytes:
    """What the processes of one run know, and nobody else."""
    return secrets.token_bytes(SECRET_BYTES)


def _proof(secret: bytes, side: bytes, challenge: bytes) -> bytes:
    return hmac.digest(secret, side + challenge, "sha256")[:PROOF_BYTES]


class _Proof:
    """What the other side has to show, as it comes in, in pieces of any size."""

    def __init__(self, expected: bytes) -> None:
        self._expected = expected
        self._received = b""

    @property
    def missing(self) -> int:
        """How many bytes are still to come."""
        return len(self._expected) - len(self._received)

    def take(self, data: bytes) -> bool:
        """At most `missing` bytes more; whether that is all of it.  Raises ForeignPeer for a whole one that is wrong:
        one that is told sooner could be guessed byte by byte."""
        self._received += data
        if self.missing:
            return False
        self.end()
        return True

    def end(self) -> None:
        """No more will come; raises ForeignPeer when what has come is not how a proof begins."""
        if not hmac.compare_digest(self._received, self._expected[: len(self._received)]):
            raise ForeignPeer("it does not know the run's secret")


class Accepting(_Proof):
    """The side that was dialled: says `challenge`, takes the other's proof, then says `proof`."""

    def __init__(self, secret: bytes) -> None:
        self.challenge = secrets.token_bytes(CHALLENGE_BYTES)
        self.proof = _proof(secret, _ACCEPTED, self.challenge)
        super().__init__(_proof(secret, _DIALLED, self.challenge))


class Dialling:
    """The side that has dialled: takes a challenge, says `proof`, then takes the other's proof."""

    def __init__(self, secret: bytes) -> None:
        self.proof = b""
        """empty until it can be made; from then on frames may follow it"""
        self._secret = secret
        self._challenge = b""
        self._theirs: _Proof | None = None

    @property
    def missing(self) -> int:
        """How many bytes are still to come of what is taken now."""
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
