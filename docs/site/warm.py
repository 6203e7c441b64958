"""Runs numtok in processes forked from a warm one, in milliseconds instead of seconds.

``python -m docs.site.warm FOLDER`` builds the sample store in ``FOLDER/artifacts``, which imports
all modules. It then forks for each call of the script ``FOLDER/numtok``.
"""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from numtok.cli import main

ROOT = Path(__file__).parents[2]
_SMALL = ("--preset", "nano,layers=1,width=32", "--steps", "100")
#: Commands that build the sample store.
SAMPLES = [
    ("gen", "rooms", "--rows", "1000"),
    ("gen", "arithmetic", "--rows", "600"),
    *(("encode", "--scheme", scheme, "rooms") for scheme in ("xval", "p1000")),
    *(("train", f"rooms-{scheme}", *_SMALL) for scheme in ("xval", "p1000")),
    *(("eval", f"rooms-{scheme}-nano") for scheme in ("xval", "p1000")),
    ("predict", "rooms-xval-nano", "--text", "A room of 3.0 m by 4.5 m has [?] square meters."),
]
#: The script ``numtok``, a small client: it sends arguments, folder, environment and files.
_CLIENT = """#!{python} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(call).to_bytes(4, "big")], [0, 1, 2])
server.sendall(call)
sys.exit(int(server.recv(8)))
"""


@contextmanager
def serving(folder: Path) -> Iterator[None]:
    """Put the sample store and the script ``numtok`` into a folder, and serve its calls."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("NUMTOK_")}
    with subprocess.Popen(
        [sys.executable, "-m", "docs.site.warm", str(folder)],
        cwd=ROOT,
        env=kept | {"NUMTOK_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdout is not None and server.stdout.readline() == b"ready\n"
        yield
        server.kill()


def _serve(folder: Path) -> None:
    os.chdir(folder)
    ready, quiet = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    for command in SAMPLES:
        if code := _code(["-q", *command]):
            raise RuntimeError(f"numtok {' '.join(command)} ended with {code}")
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # do not keep ended children as zombies
    script, address = folder / "numtok", str(folder / "socket")
    script.write_text(_CLIENT.format(python=sys.executable, address=address), encoding="utf-8")
    script.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        os.write(ready, b"ready\n")
        while True:
            caller, _ = server.accept()
            if os.fork() == 0:
                _answer(caller)
            caller.close()


def _answer(caller: socket.socket) -> NoReturn:
    """Run the call of a client with its files, folder and environment."""
    code = 70
    try:
        size, files, _, _ = socket.recv_fds(caller, 4, 3)
        with caller.makefile("rb") as stream:
            arguments, folder, environment = json.loads(stream.read(int.from_bytes(size, "big")))
        for number, file in enumerate(files):
            os.dup2(file, number)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", 1)  # noqa: SIM115
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        code = _code(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        with suppress(OSError):
            caller.sendall(str(code).encode())
        os._exit(code)


def _code(arguments: Sequence[str]) -> int:
    sys.argv = ["numtok", *arguments]
    try:
        main.main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 70
    return 0


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
