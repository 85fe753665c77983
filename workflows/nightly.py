"""Writes the report for which the schedule has come: the tick says for which instant, the body for how many days."""

import datetime
import json
import os
import sys


def main():
    days = json.load(sys.stdin)["days"]
    end = datetime.datetime.fromisoformat(os.environ["SERIATIM_PROPERTY_SCHEDULED_FOR"].replace("Z", "+00:00"))
    start = end - datetime.timedelta(days=days)
    # Whenever it runs, it is the report of the instant it was scheduled for; a retry writes the same one.
    print(f"report from {start:%Y-%m-%d} to {end:%Y-%m-%d}", file=sys.stderr)
    print(json.dumps({"outcome": "complete", "state": {"reported_to": end.isoformat()}}))


if __name__ == "__main__":
    main()
