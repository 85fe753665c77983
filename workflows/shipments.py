"""Packs parcels. It runs on: each line of stdin is a message, each line of stdout the answer to one.

Several messages, of different customers, may be under way at once; an answer names its request by `id`.
"""

import json
import sys


def main():
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"id": request["id"]}
        try:
            answer.update(packed(request["message"]))
        except (KeyError, TypeError) as error:
            answer.update(outcome="dead_letter", reason="this is no shipment", description=repr(error))
        print(json.dumps(answer), flush=True)


def packed(message):
    shipment = message["body"]
    if not shipment["items"]:
        return {"outcome": "dead_letter", "reason": "an order without items cannot be shipped"}
    parcels = (message.get("state") or {"parcels": 0})["parcels"] + 1
    return {"outcome": "complete", "state": {"parcels": parcels, "last_order": shipment["order_id"]}}


if __name__ == "__main__":
    main()
