"""A launcher that starts nothing: it says that each process has the same number, and that the first has ended.

Numbers come round on a machine that starts many processes.
"""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile

from cutproof.reference_impl.processes.launching.orders import Exited, Frames, Ready, Started, asked, frame

PID = 1 << 22
"""the most that Linux gives is one less"""

if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as control:
        folder = tempfile.mkdtemp()
        control.sendall(frame(Ready(folder=folder)))
        frames = Frames()
        started = 0
        while data := control.recv(4096):
            frames.add(data)
            while (body := frames.next()) is not None:
                control.sendall(frame(Started(serial=asked.decode(body).serial, pid=PID)))
                started += 1
                if started == 1:
                    control.sendall(frame(Exited(pid=PID, name="node-1", code=0)))
        shutil.rmtree(folder)
