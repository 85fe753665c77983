"""Completes every message at once: what a persistent handler costs that does nothing. Answers together what has come together."""
import os

rest = b""
while chunk := os.read(0, 1 << 16):
    *lines, rest = (rest + chunk).split(b"\n")
    # The request begins with {"id":N, and that is all an answer needs.
    answers = (b'{"id":%s,"outcome":"complete"}\n' % line[line.index(b":") + 1 : line.index(b",")] for line in lines)
    os.write(1, b"".join(answers))
