"""Draws a few held-back cases of every category, evenly spaced, for the project's own tests.

    python3 sample.py QUESTIONS FILE
"""

import json
import sys
from pathlib import Path

CASES_A_CATEGORY = 4


def sample(cases):
    by_category = {}
    for case in cases:
        by_category.setdefault(case["cat"], []).append(case)
    for of_category in by_category.values():
        step = max(1, len(of_category) // CASES_A_CATEGORY)
        yield from of_category[::step][:CASES_A_CATEGORY]


def main():
    cases = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    lines = (json.dumps(case, ensure_ascii=False) for case in sample(cases))
    text = "[\n" + ",\n".join(lines) + "\n]\n"
    Path(sys.argv[2]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
