"""Small JSON objects made of what the question says."""

import json

from .lists import CAPITALS, COMMON_WORDS
from .phrases import any_name, any_word


def json_object(dice):
    kind = dice.random()
    if kind < 0.4:
        return _person(dice)
    if kind < 0.7:
        return _capital(dice)
    return _two_pairs(dice)


def _person(dice):
    name = any_name(dice)
    age = dice.randint(1, 99)
    question = dice.pick(
        f"Reply in JSON with name {name} and age {age}.",
        f"Give me JSON with the name {name} and the age {age}",
        f"Write JSON for a person named {name} who is {age} years old.",
        f"Return a JSON object: name is {name}, age is {age}.",
        f"{name} is {age} years old. Reply in JSON.",
    )
    return question, json.dumps({"name": name, "age": age})


def _capital(dice):
    country, city = dice.pick(CAPITALS)
    question = dice.pick(
        f"What is the capital of {country}? Reply in JSON.",
        f"Capital of {country} as JSON",
        f"What is the capital of {country}? Answer in JSON.",
    )
    return question, json.dumps({"answer": city})


def _two_pairs(dice):
    one, two = dice.sample(COMMON_WORDS, 2)
    first, second = any_word(dice), any_word(dice)
    question = dice.pick(
        f"Make a JSON object with {one} = {first} and {two} = {second}.",
        f"Write JSON where {one} is {first} and {two} is {second}.",
    )
    return question, json.dumps({one: first, two: second})
