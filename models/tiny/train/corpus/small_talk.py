"""Greetings, who the model is, and the gateway: fixed answers to many ways of asking."""

from .lists import CITIES, read_answers
from .phrases import as_typed

GREETINGS = read_answers("greetings.txt")
IDENTITY = read_answers("identity.txt")
GATEWAY = read_answers("gateway.txt")


def greeting(dice):
    return dice.pick(_one_way_each(dice, GREETINGS))


def identity(dice):
    question, answer = dice.pick(_one_way_each(dice, IDENTITY))
    return as_typed(dice, question), answer


def gateway(dice):
    ways, answer = dice.pick(GATEWAY)
    return as_typed(dice, dice.pick(ways)), answer


def _one_way_each(dice, answers):
    """One way of asking for every answer. All are drawn though one is used: the weights that ship
    were trained on what these draws gave."""
    return [(dice.pick(_filled(dice, ways)), answer) for ways, answer in answers]


def _filled(dice, ways):
    return [way.replace("{city}", dice.pick(CITIES)) if "{city}" in way else way for way in ways]
