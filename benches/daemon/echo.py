"""Completes every message at once: what a persistent handler costs that does nothing."""
import sys

# The request begins with {"id":N, and that is all an answer needs.
for line in sys.stdin:
    number = line[line.index(":") + 1 : line.index(",")]
    sys.stdout.write(f'{{"id":{number},"outcome":"complete"}}\n')
    sys.stdout.flush()
