"""JSON of the daemon, in which one value that Python cannot read keeps nobody from the others."""

from __future__ import annotations

import base64
import collections
import itertools
import json
import operator
import re
from typing import Any, Dict, Iterator, List, Tuple, Union

#: What Python's parser has against JSON that is valid: a number of too many digits, and values too deep in each other.
UNREADABLE = (ValueError, RecursionError)
#: Before what senders and handlers wrote.
_FIELD = re.compile(rb'"(?:body|state)"\s*:\s*')
#: A string, a word or a number, where strings hold nothing but spaces.
_SCALAR = re.compile(rb'"[^"]*"|[^\s,\]}]+')
#: How much deeper it is behind a byte.
_STEPS = [(byte in b"[{") - (byte in b"]}") for byte in range(256)]


def load(text: Union[bytes, str]) -> Any:
    """Reads JSON. A ``body`` or ``state`` that cannot be read is there as ``body_text`` or ``state_base64``."""
    try:
        return json.loads(text)
    except UNREADABLE:
        kept, cut = _apart(text.encode() if isinstance(text, str) else text)
        if not cut:
            raise
    return json.loads(kept, object_hook=lambda fields: _together(fields, cut))


def _apart(text: bytes) -> Tuple[bytes, List[str]]:
    """The text with a number for each body and state, and these."""
    kept: List[bytes] = []
    cut: List[str] = []
    copied = 0
    for begin, end in _values(text):
        kept += [text[copied:begin], str(len(cut)).encode()]
        cut.append(text[begin:end].decode())
        copied = end
    return b"".join([*kept, text[copied:]]), cut


def _values(text: bytes) -> Iterator[Tuple[int, int]]:
    """Where bodies and states begin and end, in as many steps of Python as they are, however long: renewals of locks wait for it."""
    blank = _blank(text)
    steps, stepped, end = map(_STEPS.__getitem__, blank), 0, 0
    while field := _FIELD.search(text, end):
        begin = end = field.end()
        if blank[field.start()] != ord('"'):
            # It is the end of a longer key.
            continue
        if blank[begin : begin + 1] in (b"[", b"{"):
            collections.deque(itertools.islice(steps, begin - stepped), maxlen=0)
            end = stepped = begin + operator.indexOf(itertools.accumulate(steps), 0) + 1
        elif scalar := _SCALAR.match(blank, begin):
            end = scalar.end()
        if begin < end:
            yield begin, end


def _blank(text: bytes) -> bytes:
    """The text with spaces in its strings."""
    parts = text.replace(b"\\\\", b"  ").replace(b'\\"', b"  ").split(b'"')
    parts[1::2] = map(b" ".__mul__, map(len, parts[1::2]))
    return b'"'.join(parts)


def _together(fields: Dict[str, Any], cut: List[str]) -> Dict[str, Any]:
    for name in ("body", "state"):
        if name not in fields:
            continue
        text = cut[fields.pop(name)]
        try:
            fields[name] = json.loads(text)
        except UNREADABLE:
            if name == "body":
                fields["body_text"] = text
            else:
                fields["state_base64"] = base64.b64encode(text.encode()).decode()
    return fields
