"""Applies one change to an order. The order is the state of its workflow: it is kept together with the completion.

The body comes on stdin, all else in the environment; the last line of stdout is the answer. Exit code 75 asks for a
retry, 65 dead-letters the message.
"""

import json
import os
import sys

RETRY = 75
DEAD_LETTER = 65


def main():
    change = json.load(sys.stdin)
    order = json.loads(os.environ.get("SERIATIM_STATE", "null")) or {"version": 0, "items": {}, "closed": False}
    # A message may ask for trouble, to show what becomes of it.
    failures = int(os.environ.get("SERIATIM_PROPERTY_FAIL", "0"))
    attempt = int(os.environ.get("SERIATIM_DELIVERY_COUNT", "1"))
    if attempt <= failures:
        give_up(RETRY, f"attempt {attempt} of {failures} that were asked to fail")
    if change["version"] != order["version"] + 1:
        give_up(DEAD_LETTER, f"version {change['version']} came after {order['version']}: that must not happen")
    if order["closed"]:
        give_up(DEAD_LETTER, "the order is closed")
    print(json.dumps(applied(change, order)))


def applied(change, order):
    """The answer: the new state, and what is to be sent."""
    order["version"] = change["version"]
    for item, count in change.get("add", {}).items():
        order["items"][item] = order["items"].get(item, 0) + count
    answer = {"outcome": "complete", "state": order}
    if change.get("close"):
        order["closed"] = True
        shipment = {"order_id": change["order_id"], "customer": change["customer"], "items": order["items"]}
        answer["send"] = [{"queue": "shipments", "message_id": change["order_id"], "body": shipment}]
    return answer


def give_up(code, reason):
    print(reason, file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
