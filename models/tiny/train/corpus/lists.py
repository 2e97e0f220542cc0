"""The words, tables and answers in `lists/`, all written by hand for this model."""

from pathlib import Path

FOLDER = Path(__file__).parent / "lists"


def _lines(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def read_words(name):
    """Words with blanks between them."""
    return " ".join(_lines(name)).split()


def read_table(name):
    """`key: value`, one a line."""
    return dict(line.split(": ", 1) for line in _lines(name))


def read_answers(name):
    """Pairs of ways to ask and the answer to them all: `> answer`, then the ways, one a line."""
    pairs = []
    for line in _lines(name):
        if line.startswith("> "):
            pairs.append(([], line.removeprefix("> ")))
        else:
            pairs[-1][0].append(line)
    return pairs


COMMON_WORDS = read_words("common-words.txt")
NAMES = read_words("names.txt")
CAPITALS = sorted(read_table("capitals.txt").items())
CITIES = sorted({capital for _, capital in CAPITALS}) + _lines("more-cities.txt")

FOODS = (
    "pizza pasta sushi bread soup cheese rice chocolate curry salad"
    " tacos noodles pancakes apples mango cake cookies fish eggs ramen"
).split()
COLOR_WORDS = "red green blue yellow white black brown pink purple orange gray gold silver".split()
JOBS = (
    "teacher doctor nurse farmer baker engineer pilot writer painter singer"
    " lawyer chef driver student programmer designer gardener scientist"
).split()
ANIMALS = "dog cat horse rabbit parrot fish hamster turtle snake goat duck mouse".split()
