"""Text to repeat exactly."""

from .lists import COMMON_WORDS
from .phrases import made_up_word, phrase

BEFORE_TEXT = [
    "Repeat: ",
    "repeat: ",
    "Repeat after me: ",
    "Repeat this: ",
    "Echo: ",
    "echo: ",
    "echo ",
    "Echo this: ",
    "Say exactly: ",
    "Say: ",
    "Copy: ",
    "Copy this text: ",
    "Repeat the following text: ",
    "Reply with exactly: ",
    "Please repeat: ",
    "Say this: ",
    "Write: ",
    "Print: ",
    "Output exactly: ",
    "Repeat this back to me: ",
    "Return exactly this: ",
    "repeat after me: ",
    "Reply with exactly this text: ",
    "Please say: ",
]


def echo(dice):
    text = phrase(dice)
    kind = dice.random()
    if kind < 0.22:
        return _one_word(dice)
    if kind < 0.3:
        verb = dice.pick("Say", "Repeat", "Reply with", "Echo", "Write", "Print", "Output")
        ending = dice.pick("", ".", " and nothing else.", " exactly.")
        return f'{verb} "{text}"{ending}', text
    if kind < 0.36:
        return f"{dice.pick('Say', 'Repeat', 'Reply with', 'Write')} '{text}'", text
    if kind < 0.42:
        return _several_times(dice)
    return dice.pick(BEFORE_TEXT) + text, text


def _one_word(dice):
    word = dice.pick(COMMON_WORDS) if dice.chance(0.6) else made_up_word(dice)
    if dice.chance(0.35):
        word = word.upper()
    elif dice.chance(0.3):
        word = word.capitalize()
    question = dice.pick(
        f"Reply with exactly the word {word}.",
        f"Reply with the word {word}",
        f"Reply with one word: {word}",
        f"Say the word {word}.",
        f"Reply with exactly: {word}",
        f"Just say {word}",
        f"Answer with the single word {word}",
        f"Say {word}",
        f"Only reply {word}",
        f"Respond with {word}",
        f"Respond with exactly: {word}",
        f"Say only {word}",
        f"Reply {word}",
        f"Output {word}",
        f"say {word}",
    )
    return question, word


def _several_times(dice):
    word = dice.pick(COMMON_WORDS) if dice.chance(0.7) else made_up_word(dice)
    times = dice.randint(2, 5)
    question = dice.pick(
        f"Say {word} {times} times.",
        f"Repeat the word {word} {times} times.",
        f"Write {word} {times} times.",
    )
    return question, " ".join([word] * times)
