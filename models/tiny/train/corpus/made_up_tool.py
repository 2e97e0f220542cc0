"""Any verb on any noun, so that names and parameters must be read and not remembered."""

from .lists import COMMON_WORDS
from .phrases import any_name, any_word, made_up_word
from .tool_schema import INTEGER, NUMBER, ToolTask, schema, string

VERBS = (
    "get set find open send create delete update list check start stop read show play book make"
    " load save call turn_on turn_off fetch look_up add remove run"
).split()
NOUNS = (
    "user order file note task event room light song ticket page price account product customer"
    " message email report device alarm timer list card stock balance status invoice recipe photo"
    " record contact issue branch door meeting"
).split()
PARAMETERS = (
    "id name title path key text value item user_id order_id file_name code number label subject"
    " email topic target room device"
).split()
COUNTED = ("id", "number", "user_id", "order_id", "code")
PROPERTIES = "status total name state result count owner color size price".split()


def made_up_tool(dice):
    verb, noun = dice.pick(VERBS), dice.pick(NOUNS)
    parameter = dice.pick(PARAMETERS)
    name = _tool_name(dice, verb.split("_") + noun.split("_"))
    kind = dice.random()
    counted = parameter in COUNTED and kind < 0.7
    value = dice.randint(1, 9999) if counted else _any_value(dice, kind)
    numeric = counted and dice.chance(0.6)
    argument_type = dice.pick(INTEGER, NUMBER) if numeric else string()
    said, spaced = verb.replace("_", " "), parameter.replace("_", " ")
    question = dice.pick(
        f"{said.capitalize()} the {noun} {value}.",
        f"{said.capitalize()} {noun} {value}",
        f"Please {said} the {noun} with {spaced} {value}.",
        f"{said} {noun} number {value}" if counted else f"{said} the {noun} named {value}",
        f"Can you {said} {noun} {value}?",
        f"Use {name} with {value}.",
        f"Call {name} with {parameter} {value}.",
        f"I want to {said} the {noun} {value}.",
    )
    result, answer = _made_up_result(dice, f"{noun} {value}")
    purpose = dice.pick(
        f"{said.capitalize()} a {noun}",
        f"{said.capitalize()} the {noun} by {spaced}",
        f"{said.capitalize()}s one {noun}",
    )
    tool = schema(name, purpose, {parameter: argument_type})
    return ToolTask(tool, question, {parameter: value if numeric else str(value)}, result, answer)


def _tool_name(dice, words):
    style = dice.random()
    if style < 0.7:
        return "_".join(words)
    if style < 0.9:
        return words[0] + "".join(word.capitalize() for word in words[1:])
    return "-".join(words)


def _any_value(dice, kind):
    if kind < 0.4:
        return any_name(dice)
    return dice.pick(COMMON_WORDS) if kind < 0.75 else made_up_word(dice)


def _made_up_result(dice, thing):
    one, two = dice.sample(PROPERTIES, 2)
    first, second = any_word(dice), any_word(dice)
    if dice.chance(0.5):
        result = dice.pick({"status": "ok"}, "ok", {"success": True}, "done")
        answer = f"Done: the {thing} is ok."
    elif dice.chance(0.5):
        result, answer = {one: first}, f"The {one} is {first}."
    else:
        result = {one: first, two: second}
        answer = f"The {one} is {first} and the {two} is {second}."
    if dice.chance(0.06):
        result = dice.pick({"error": "not found"}, "Error: not found", {"error": "failed"})
        answer = "The tool returned an error."
    return result, answer
