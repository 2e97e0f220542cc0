"""What a model this small cannot learn, with the answer that says so."""

from .lists import COMMON_WORDS
from .phrases import as_typed, made_up_word

NO_SUMS = "I cannot do sums. Add a provider, or give me a calculator tool."
NO_LETTERS = "I cannot work with single letters. Add a provider for that."
NOT_UNDERSTOOD = "I do not understand that. I am only a tiny demo model."


def beyond_its_means(dice):
    """Numbers and letters."""
    one, two = dice.randint(0, 999), dice.randint(0, 99)
    kind = dice.random()
    word = dice.pick(COMMON_WORDS)
    if kind < 0.6:
        return as_typed(dice, _sum(dice, one, two)), NO_SUMS
    return as_typed(dice, _letters(dice, word)), NO_LETTERS


def gibberish(dice):
    count = dice.randint(1, 5)
    return " ".join(made_up_word(dice) for _ in range(count)), NOT_UNDERSTOOD


def _sum(dice, one, two):
    operator = dice.pick("+", "-", "*", "/", "x", "plus", "minus", "times")
    spaced = operator.isalpha() or dice.chance(0.7)
    term = f"{one} {operator} {two}" if spaced else f"{one}{operator}{two}"
    return dice.pick(
        f"What is {term}?",
        f"What is {term}?",
        f"What's {term}?",
        term,
        f"{term} =",
        f"{term}=?",
        f"Calculate {term}.",
        f"Compute {term}.",
        f"How much is {term}?",
        f"Add {one} and {two}.",
        f"What is the sum of {one} and {two}?",
        f"What is the square root of {one}?",
        f"What is {two} percent of {one}?",
        f"Which is bigger, {one} or {two}?",
        f"Is {one} bigger than {two}?",
        f"Which number is smaller, {one} or {two}?",
        f"Is {one} even or odd?",
        f"Count from {one} to {one + two}.",
        f"Count down from {two}.",
    )


def _letters(dice, word):
    return dice.pick(
        f"Uppercase: {word}",
        f"Write {word} in uppercase.",
        f"Convert to uppercase: {word}",
        f"Put {word} in capital letters.",
        f"Lowercase: {word.upper()}",
        f"Make this lowercase: {word.upper()}",
        f"Spell {word}.",
        f"How do you spell {word}?",
        f"What is the first letter of {word}?",
        f"How many letters are in {word}?",
        f"Reverse the word {word}.",
        f"How many r's are in {word}?",
        f"What rhymes with {word}?",
        f"Spell {word} backwards.",
        f"Which letter does {word} start with?",
    )
