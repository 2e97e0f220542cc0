"""Writes the held-back set: conversations up to a turn, and the turn that is wanted.

    python3 questions.py FILE

Every case holds a question, or for recall a statement, that no training conversation holds.
"""

import json
import sys
from pathlib import Path

from corpus.conversations import EXCHANGES, conversation_with_tools, exchange
from corpus.dice import Dice
from corpus.held_back import holds_one, is_held_back
from corpus.memory import memory

SEED = 999
CASES_A_CATEGORY = 60
# Closed categories hold fewer held-back questions than that.
MOST_DRAWS = 60_000
TOOL_CONVERSATIONS = 80
MEMORIES = 80


def case(category, turns, want):
    return {"cat": category, "messages": turns, "want": want}


def single_cases(dice, category, draw):
    cases, seen = [], set()
    for _ in range(MOST_DRAWS):
        question, answer = draw(dice)
        if is_held_back(question) and question not in seen:
            seen.add(question)
            cases.append(case(category, [("user", question)], answer))
            if len(cases) == CASES_A_CATEGORY:
                break
    return cases


def tool_cases(dice):
    cases, conversations = [], 0
    while conversations < TOOL_CONVERSATIONS:
        turns = conversation_with_tools(dice)
        if holds_one(turns):
            conversations += 1
            cases += _assistant_turns(turns)
    return cases


def _assistant_turns(turns):
    cases = []
    for place, (role, text) in enumerate(turns):
        before = turns[:place]
        if role == "assistant" and holds_one(before):
            cases.append(case(_tool_category(before, text), before, text))
    return cases


def _tool_category(before, text):
    if text.startswith("<tool_call>"):
        return "tool_call"
    _, last = before[-1]
    return "tool_answer" if last.startswith("<tool_response>") else "tool_text"


def memory_cases(dice):
    """A statement that is held back, up to three other exchanges, and the question for it."""
    cases = []
    while len(cases) < 2 * MEMORIES:
        (statement, reply), ask = memory(dice)
        others = dice.randint(0, 3)
        if not is_held_back(statement):
            continue
        turns = [("user", statement), ("assistant", reply)]
        for _ in range(others):
            question, answer = exchange(dice, something_told=True)
            turns += [("user", question), ("assistant", answer)]
        question, answer = ask()
        cases.append(case("memory_recall", [*turns, ("user", question)], answer))
        cases.append(case("memory_store", turns[:1], reply))
    return cases


def all_cases():
    dice = Dice(SEED)
    cases = []
    for category, draw, _, _ in EXCHANGES:
        cases += single_cases(dice, category, draw)
    return cases + tool_cases(dice) + memory_cases(dice)


def main():
    cases = all_cases()
    text = json.dumps(cases, ensure_ascii=False)
    Path(sys.argv[1]).write_text(text, encoding="utf-8")
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
