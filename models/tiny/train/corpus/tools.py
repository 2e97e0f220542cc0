"""Conversations with tools, in the words of the chat template: Hermes-style calls and results."""

import json

from .tool_tasks import TASKS

HEAD = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)
TAIL = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments"
    " within <tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
)


def tool_conversation(dice, system_prompt, exchange):
    """Up to three tools, up to three turns; `exchange` draws the turns that need no tool."""
    tasks = _different_tasks(dice, dice.pick_weighted([1, 2, 3], [6, 3, 1]))
    turns = [("system", _system_turn(dice, system_prompt(dice), tasks))]
    for _ in range(dice.pick_weighted([1, 2, 3], [7, 3, 1])):
        if dice.chance(0.15):
            question, answer = exchange(dice)
            turns += [("user", question), ("assistant", answer)]
        else:
            turns += _turns_with_call(dice, dice.pick(tasks))
    return turns


def _different_tasks(dice, count):
    """Tasks whose tools cannot be taken for one another."""
    tasks, names = [], set()
    while len(tasks) < count:
        task = dice.pick(TASKS)(dice)
        if task.name not in names and not (count > 1 and _resembles_one(task.name, names)):
            names.add(task.name)
            tasks.append(task)
    return tasks


def _resembles_one(name, names):
    return any(name.split("_")[-1] == other.split("_")[-1] for other in names)


def _system_turn(dice, system, tasks):
    before = f"{system}\n\n" if system else ""
    return before + HEAD + "".join("\n" + _json(dice, task.schema) for task in tasks) + TAIL


def _turns_with_call(dice, task):
    call = json.dumps({"name": task.name, "arguments": task.arguments}, ensure_ascii=False)
    result = task.result if isinstance(task.result, str) else _json(dice, task.result)
    return [
        ("user", task.question),
        ("assistant", f"<tool_call>\n{call}\n</tool_call>"),
        ("user", f"<tool_response>\n{result}\n</tool_response>"),
        ("assistant", task.answer),
    ]


def _json(dice, value):
    """JSON with blanks or, as some clients send it, without."""
    separators = (",", ":") if dice.chance(0.25) else None
    return json.dumps(value, ensure_ascii=False, separators=separators)
