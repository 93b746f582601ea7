"""What is wrong with the proxies of a pipeline's file."""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.config import nearest
from ..description import BREAKING, CLIENT, LOSSLESS, PipelineFile, Proxy
from ..places import NAME, NAME_IN_WORDS, is_port, places_in

PORTS = range(1, 65_536)
LONGEST_MS = 60_000
Texts = Sequence[tuple[str, str]]
"""texts of the file, with their places in it"""


def proxy_problems(file: PipelineFile, of_commands: Texts, of_cutproof: Texts) -> list[str]:
    """What is wrong with the proxies, in words.

    What cutproof feeds, reads and looks at goes directly: a fault of the pipeline is not to be felt there.
    """
    found: list[str] = []
    listened: dict[str, str] = {}
    for name, proxy in file.proxies.items():
        where = f"proxies.{name}"
        found += [f"{where}{problem}" for problem in _own_problems(name, proxy)]
        place = _port_of(proxy.listen)
        if not place:
            continue
        if place in listened:
            found.append(f"{where}.listen: proxies.{listened[place]} listens there already")
        listened[place] = name
        found += [
            f"{one}: {{{place}}} is the port of {where}; what cutproof uses itself does not go through a proxy"
            for one, text in of_cutproof
            if place in places_in(text)
        ]
        if not any(place in places_in(text) for _, text in of_commands):
            found.append(f"{where}.listen: no command has {{{place}}}, so nothing goes through the proxy")
        if file.run.ends and file.feed.to == "socket" and file.feed.port == proxy.upstream:
            found += _ends_of_input(where, proxy)
    return found


def _own_problems(name: str, proxy: Proxy) -> list[str]:
    found = [] if NAME.fullmatch(name) else [f": {NAME_IN_WORDS}"]
    found += [": this is the name of the other end of a connection"] if name == CLIENT else []
    if not _port_of(proxy.listen):
        found.append(f".listen: {proxy.listen!r} is not the place of a port, such as {{port2}}")
    if not is_port_or_its_place(proxy.upstream):
        found.append(f".upstream: {proxy.upstream!r} is neither the place of a port, such as {{port1}}, nor a port")
    if proxy.upstream == proxy.listen:
        found.append(".upstream: it is the port on which the proxy itself listens")
    known = (*BREAKING, *LOSSLESS)
    found += [
        f".faults: {kind!r} is none of {', '.join(known)}{nearest(kind, known)}"
        for kind in proxy.faults
        if kind not in known
    ]
    found += [] if proxy.faults else [".faults is empty, so nothing would be tried"]
    if not proxy.for_ms or any(not 0 < one <= LONGEST_MS for one in proxy.for_ms):
        found.append(f".for_ms: a fault lasts from 1 to {LONGEST_MS} ms")
    return found


def _ends_of_input(where: str, proxy: Proxy) -> list[str]:
    """A broken connection cannot be told from the end of an input that ends with its connection."""
    breaking = [kind for kind in proxy.faults if kind in BREAKING]
    others = ", ".join(f'"{kind}"' for kind in proxy.faults if kind in LOSSLESS)
    return [
        f"{where}.faults: with run.ends the input ends when its connection does, which {kind} cannot be told from; "
        f"leave [{others}]"
        for kind in breaking[:1]
    ]


def is_port_or_its_place(text: str) -> bool:
    """Whether a text is the place of a port, or the number of one."""
    return bool(_port_of(text)) or (text.isascii() and text.isdecimal() and int(text) in PORTS)


def _port_of(text: str) -> str:
    """The name of the place that a text consists of, if it is that of a port."""
    name = text.removeprefix("{").removesuffix("}")
    return name if is_port(name) and text == f"{{{name}}}" else ""
