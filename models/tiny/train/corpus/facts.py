"""Small facts from closed tables."""

from .lists import CAPITALS, read_table
from .phrases import article, as_typed, upper_first

COLORS = sorted(read_table("colors.txt").items())
HOW_MANY = sorted(read_table("how-many.txt").items())
OPPOSITES = read_table("opposites.txt")
SOUNDS = sorted(read_table("sounds.txt").items())
YOUNG = sorted(read_table("young.txt").items())
TRANSLATIONS = sorted(read_table("translations.txt").items())
LANGUAGES = ("Spanish", "French", "German")
DEFINITIONS = sorted(read_table("definitions.txt").items())
ENUMERATIONS = sorted(read_table("enumerations.txt").items())
DAYS = read_table("enumerations.txt")["days of the week"].split(", ")
MONTHS = read_table("enumerations.txt")["months of the year"].split(", ")

SEVERAL_COUNTRIES = ("Singapore", "London")


def capital(dice):
    country, city = dice.pick(CAPITALS)
    kind = dice.random()
    if kind < 0.75:
        question = dice.pick(
            f"What is the capital of {country}?",
            f"What is the capital of {country}?",
            f"What's the capital of {country}?",
            f"capital of {country}",
            f"Capital of {country}?",
            f"Which city is the capital of {country}?",
            f"Tell me the capital of {country}.",
            f"Do you know the capital of {country}?",
            f"Name the capital of {country}.",
            f"What is {country}'s capital?",
            f"{upper_first(country)} capital?",
        )
        stop = "" if city.endswith(".") else "."
        return as_typed(dice, question), f"The capital of {country} is {city}{stop}"
    if kind < 0.82:
        question = dice.pick(
            f"What is the capital of {country}? Answer with one word.",
            f"What is the capital of {country}? Reply with the name only.",
            f"Capital of {country}, one word only",
        )
        return question, city
    if city in SEVERAL_COUNTRIES:
        return capital(dice)
    question = dice.pick(
        f"{city} is the capital of which country?",
        f"Which country has the capital {city}?",
        f"Which country is {city} the capital of?",
        f"Where is {city}?",
    )
    return as_typed(dice, question), f"{city} is the capital of {country}."


def color(dice):
    thing, its_color = dice.pick(COLORS)
    question = dice.pick(
        f"What color is {thing}?",
        f"What colour is {thing}?",
        f"What is the color of {thing}?",
        f"Which color is {thing}?",
        f"Tell me the color of {thing}.",
    )
    return as_typed(dice, question), f"{upper_first(thing)} is {its_color}."


def how_many(dice):
    counted, number = dice.pick(HOW_MANY)
    return as_typed(dice, f"How many {counted}?"), _sentence_with(number, counted)


def _sentence_with(number, counted):
    if " does " in counted:
        parts, owner = counted.split(" does ")
        return f"{upper_first(owner.replace(' have', ''))} has {number} {parts}."
    if counted.endswith(" are there"):
        return f"There are {number} {counted.removesuffix(' are there')}."
    things, place = counted.split(" are ", 1)
    return f"There are {number} {things} {place}."


def opposite(dice):
    word, other = dice.pick(sorted(OPPOSITES.items()))
    if dice.chance(0.3) and _has_one_opposite(other):
        word, other = other, word
    question = dice.pick(
        f"What is the opposite of {word}?",
        f"Opposite of {word}?",
        f"What's the opposite of {word}?",
        f"Give me the opposite of {word}.",
    )
    return as_typed(dice, question), f"The opposite of {word} is {other}."


def _has_one_opposite(word):
    return list(OPPOSITES.values()).count(word) == 1 and word not in OPPOSITES


def animal(dice):
    if dice.chance(0.5):
        name, sound = dice.pick(SOUNDS)
        owner = f"{article(name)} {name}"
        question = dice.pick(
            f"What sound does {owner} make?", f"What does {owner} say?", f"How does {owner} sound?"
        )
        return as_typed(dice, question), f"{upper_first(owner)} says {sound}."
    name, young = dice.pick(YOUNG)
    question = dice.pick(
        f"What is a baby {name} called?",
        f"What do you call a baby {name}?",
        f"What is a young {name} called?",
    )
    return as_typed(dice, question), f"A baby {name} is called {article(young)} {young}."


def translation(dice):
    word, in_languages = dice.pick(TRANSLATIONS)
    language = dice.pick(sorted(LANGUAGES))
    translated = dict(zip(LANGUAGES, in_languages.split(" / "), strict=True))[language]
    question = dice.pick(
        f"How do you say {word} in {language}?",
        f"What is {word} in {language}?",
        f"Translate {word} to {language}.",
        f'Translate "{word}" into {language}.',
        f"{upper_first(word)} in {language}?",
        f"What is the {language} word for {word}?",
    )
    return as_typed(dice, question), f"In {language}, {word} is {translated}."


def definition(dice):
    word, sentence = dice.pick(DEFINITIONS)
    first = sentence.split(" ")[0]
    named = f"{first.lower()} {word}" if first in ("A", "An") else word
    question = dice.pick(
        f"What is {named}?",
        f"What is {named}?",
        f"What's {named}?",
        f"Define {word}.",
        f"Define {named}.",
        f"Explain {word}.",
        f"What does {word} mean?",
        f"What is the meaning of {word}?",
        f"Explain what {named} is.",
        f"Tell me about {word}.",
        f"Give me a definition of {word}.",
        f"Can you explain {named}?",
    )
    return as_typed(dice, question), sentence


def enumeration(dice):
    if dice.chance(0.3):
        return _neighbour(dice)
    name, members = dice.pick(ENUMERATIONS)
    question = dice.pick(
        f"List the {name}.",
        f"What are the {name}?",
        f"Name the {name}.",
        f"Name all {name}.",
        f"Tell me the {name}.",
        f"Write down the {name}.",
    )
    return as_typed(dice, question), members


def _neighbour(dice):
    members, unit = (DAYS, "day") if dice.chance(0.5) else (MONTHS, "month")
    place = dice.randrange(len(members))
    member = members[place]
    after = members[(place + 1) % len(members)]
    before = members[place - 1]
    return dice.pick(
        (as_typed(dice, f"What {unit} comes after {member}?"), f"{after} comes after {member}."),
        (as_typed(dice, f"What {unit} comes before {member}?"), f"{before} comes before {member}."),
    )


def counting(dice):
    last = dice.pick(3, 5, 10)
    question = dice.pick(
        f"Count to {last}.",
        f"Count from 1 to {last}.",
        f"Count up to {last}.",
        f"Can you count to {last}?",
        f"Please count from 1 to {last}",
        f"List the numbers from 1 to {last}.",
    )
    return as_typed(dice, question), ", ".join(str(i) for i in range(1, last + 1))
