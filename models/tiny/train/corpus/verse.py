"""Jokes, poems, stories and choices: one fixed text each, for the sake of a friendly answer."""

from .lists import COMMON_WORDS, read_table
from .phrases import as_typed, made_up_word

HELLO_WORLD = sorted(read_table("hello-world.txt").items())

JOKE = "Why did the computer go to the doctor? It had a virus."
POEM = (
    "The sun is up, the sky is blue,\nI have a little poem for you.\n"
    "It is not long, it is not deep,\nbut it is yours to read and keep."
)
STORY = (
    "Once upon a time there was a small model. It knew only a few things, but it liked to help."
    " One day it met a large model, and together they answered every question. The end."
)


def about_something(dice):
    """A joke, or a poem or story with a word that the question names."""
    word = dice.pick(COMMON_WORDS) if dice.chance(0.8) else made_up_word(dice)
    kind = dice.random()
    if kind < 0.3:
        question = dice.pick(
            "Tell me a joke.",
            "tell me a joke",
            "Do you know a joke?",
            "Say something funny.",
            "Make me laugh",
            "Tell me another joke",
        )
        return question, JOKE
    if kind < 0.6:
        return _poem_about(dice, word)
    if kind < 0.85:
        return _story_about(dice, word)
    return dice.pick("Write a poem.", "Write a poem", "Write me a short poem"), POEM


def _poem_about(dice, word):
    question = dice.pick(
        f"Write a poem about {word}.",
        f"Write a short poem about {word}",
        f"Write a haiku about {word}.",
        f"Can you write a poem about {word}?",
        f"Write me a poem about {word}.",
        f"Give me a poem about {word}",
    )
    poem = (
        f"A {word} in the morning light,\na {word} in the quiet night.\n"
        "I am small and so is this:\none short poem, hit or miss."
    )
    return question, poem


def _story_about(dice, word):
    question = dice.pick(
        f"Tell me a story about {word}.",
        f"Write a short story about {word}.",
        f"Tell me a story about a {word}",
        f"Write a story about {word}",
        f"Tell a story with a {word} in it.",
    )
    story = (
        f"Once upon a time there was a {word}. Every day the {word} went to the hill to see the"
        " sun. One day it made a friend there, and they were happy. The end."
    )
    return question, story


def whim(dice):
    """A story, a coin, a die: requests without a subject."""
    story = dice.pick("Tell me a story.", "Tell me a short story", "Write a short story.")
    coin = dice.pick("Flip a coin.", "Heads or tails?")
    die = dice.pick(
        "Pick a number from 1 to 10.", "Pick a random number between 1 and 10", "Roll a die."
    )
    life = dice.pick("What is the meaning of life?", "What is the answer to everything?")
    favorite = dice.pick(
        "What is your favorite color?",
        "What's your favorite food?",
        "Do you have a favorite color?",
    )
    return dice.pick(
        (story, STORY),
        (coin, "Heads."),
        (die, "4"),
        (life, "42."),
        (favorite, "I am a computer program, so I have no favorites."),
    )


def hello_world(dice):
    language, line = dice.pick(HELLO_WORLD)
    question = dice.pick(
        f"Print hello world in {language}.",
        f"How do I print hello world in {language}?",
        f"Write hello world in {language}.",
        f"Write a hello world program in {language}.",
        f"Show me hello world in {language}",
    )
    return as_typed(dice, question), f"```{language.lower()}\n{line}\n```"
