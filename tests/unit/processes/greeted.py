"""How two processes of a run greet each other, written again: for tests that are one of them."""

from __future__ import annotations

import hashlib
import hmac
import socket

SECRET = b"known to those of the test's run"


def proof(secret: bytes, side: bytes, challenge: bytes) -> bytes:
    return hmac.new(secret, side + b" " + challenge, hashlib.sha256).digest()[:16]


def read(sock: socket.socket, count: int) -> bytes:
    """Exactly so many bytes, or what there was before the end."""
    found = b""
    while len(found) < count and (more := sock.recv(count - len(found))):
        found += more
    return found


def dialled(sock: socket.socket, secret: bytes) -> socket.socket:
    """Greet whoever has been dialled."""
    challenge = read(sock, 16)
    sock.sendall(proof(secret, b"dialled", challenge))
    assert read(sock, 16) == proof(secret, b"accepted", challenge)
    return sock


def accepted(listener: socket.socket, secret: bytes) -> socket.socket:
    """Take the next connection that does not end at once, and greet whoever has made it."""
    challenge = b"sixteen of these"
    while True:
        sock, _ = listener.accept()
        sock.settimeout(10)
        sock.sendall(challenge)
        shown = read(sock, 16)
        if shown:
            assert shown == proof(secret, b"dialled", challenge)
            sock.sendall(proof(secret, b"accepted", challenge))
            return sock
        sock.close()
