"""Words, names and phrases to talk about, and the way people type."""

from .lists import COMMON_WORDS, NAMES

CONSONANTS = "b c d f g h j k l m n p r s t v w z br ch cl dr fl gr pl sh st th tr".split()
VOWELS = "a e i o u a e i o ai ea oo".split()
ENDINGS = ["", "", "n", "r", "s", "t", "l", "m", "k"]

NOT_ASCII = (
    "café naïve über señor Zürich crème façade jalapeño 你好 世界 Привет мир"
    " こんにちは 👍 🎉 🚀 ❤️ é ñ ü – … “ok” €"
).split()

OPENINGS = [
    "Please tell me: ",
    "Can you tell me: ",
    "I have a question: ",
    "Question: ",
    "Hi. ",
    "Hello! ",
    "Hey, ",
    "ok, ",
    "Please, ",
    "One more thing: ",
    "Tell me, ",
    "So, ",
    "And ",
]
CLOSINGS = [
    " Thanks!",
    " Thank you.",
    " please",
    " Please answer.",
    " I want to know.",
    " Be brief.",
]


def made_up_word(dice, syllables=None):
    count = syllables or dice.randint(1, 3)
    body = "".join(dice.pick(CONSONANTS) + dice.pick(VOWELS) for _ in range(count))
    return body + dice.pick(ENDINGS)


def any_name(dice):
    if dice.chance(0.6):
        return dice.pick(NAMES)
    return made_up_word(dice, dice.randint(1, 3)).capitalize()


def any_word(dice):
    kind = dice.random()
    if kind < 0.55:
        return dice.pick(COMMON_WORDS)
    if kind < 0.85:
        return made_up_word(dice, dice.randint(1, 3))
    if kind < 0.92:
        return dice.pick(NAMES)
    return str(dice.randint(0, 9999))


def common_words(dice, fewest, most):
    return " ".join(dice.pick(COMMON_WORDS) for _ in range(dice.randint(fewest, most)))


def any_words(dice, fewest, most):
    return " ".join(any_word(dice) for _ in range(dice.randint(fewest, most)))


def phrase(dice):
    """Something to repeat: one to five words, sometimes loud, sometimes not ASCII."""
    text = _plain_phrase(dice)
    loudness = dice.random()
    if loudness < 0.12:
        text = text.upper()
    elif loudness < 0.25:
        text = text[:1].upper() + text[1:]
    if dice.chance(0.12):
        text += dice.pick("!", ".", "?", "...")
    return text


def _plain_phrase(dice):
    kind = dice.random()
    if kind < 0.35:
        return any_word(dice)
    if kind < 0.85:
        return any_words(dice, 2, 5)
    if kind < 0.93:
        first = dice.pick(COMMON_WORDS)
        return first + "-" + dice.pick(str(dice.randint(0, 999)), dice.pick(COMMON_WORDS))
    text = dice.pick(NOT_ASCII)
    return f"{text} {any_word(dice)}" if dice.chance(0.5) else text


def as_typed(dice, question):
    """The question as people type it: lower case, no question mark, an opening, a thank you."""
    text = question
    if dice.chance(0.25) and not text.startswith("I "):
        text = _lower_first(text)
    if dice.chance(0.2) and text[-1:] in "?.":
        text = text[:-1]
    if dice.chance(0.05):
        text = text.lower()
    if dice.chance(dice.opening_chance):
        text = dice.pick(OPENINGS) + _lower_first(text)
    if dice.chance(0.06):
        text += dice.pick(CLOSINGS)
    return text


def article(word):
    return "an" if word[0] in "aeiou" else "a"


def upper_first(text):
    return text[:1].upper() + text[1:]


def _lower_first(text):
    return text[:1].lower() + text[1:]
