"""JSON of the daemon, in which one value that Python cannot read keeps nobody from the others."""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Dict, List, Tuple, Union

#: What Python's parser has against JSON that is valid: a number of too many digits, and values too deep in each other.
UNREADABLE = (ValueError, RecursionError)
#: A part of JSON: a string, what values are made of, or a word or a number.
_PART = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s"{}\[\],:]+')
#: What senders and handlers wrote, and how it is shown where it is no JSON.
_OTHERS = ('"body"', '"state"')


def load(text: Union[bytes, str]) -> Any:
    """Reads JSON. A ``body`` or ``state`` that cannot be read is there as ``body_text`` or ``state_base64``."""
    try:
        return json.loads(text)
    except UNREADABLE:
        kept, cut = _apart(text.decode() if isinstance(text, bytes) else text)
        if not cut:
            raise
    return json.loads(kept, object_hook=lambda fields: _together(fields, cut))


def _apart(text: str) -> Tuple[str, List[str]]:
    """The text with a number for each body and state, and these."""
    kept: List[str] = []
    cut: List[str] = []
    before, name, depth, begin, copied = "", "", 0, -1, 0
    for part in _PART.finditer(text):
        if begin < 0 and before == ":" and name in _OTHERS:
            begin, depth = part.start(), 0
        name, before = before, part.group()
        if begin < 0:
            continue
        depth += (before in "{[") - (before in "}]")
        if depth == 0:
            kept += [text[copied:begin], str(len(cut))]
            cut.append(text[begin : part.end()])
            begin, copied = -1, part.end()
    return "".join([*kept, text[copied:]]), cut


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
