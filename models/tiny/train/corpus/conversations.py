"""Whole conversations: lists of (role, text) in which only the assistant's turns are trained."""

from dataclasses import dataclass

from .dice import Dice
from .echo import echo
from .facts import (
    animal,
    capital,
    color,
    counting,
    definition,
    enumeration,
    how_many,
    opposite,
    translation,
)
from .held_back import holds_one
from .json_objects import json_object
from .limits import beyond_its_means, gibberish
from .lists import JOBS, NAMES
from .memory import memory, nothing_to_recall
from .out_of_domain import out_of_domain
from .small_talk import gateway, greeting, identity
from .tools import tool_conversation
from .verse import about_something, hello_world, whim

# category, function that draws an exchange of it, weight in the first mix and in the second
EXCHANGES = [
    ("greet", greeting, 6, 6),
    ("ident", identity, 9, 8),
    ("gateway", gateway, 12, 14),
    ("capital", capital, 10, 18),
    ("color", color, 4, 5),
    ("howmany", how_many, 4, 10),
    ("opposite", opposite, 5, 5),
    ("animal", animal, 4, 4),
    ("translate", translation, 6, 6),
    ("define", definition, 8, 9),
    ("listing", enumeration, 3, 10),
    ("count", counting, 1, 2),
    ("cannot", beyond_its_means, 7, 6),
    ("echo", echo, 20, 22),
    ("creative", about_something, 2, 4),
    ("poemstory", whim, 1, 1),
    ("code", hello_world, 1, 1),
    ("js", json_object, 6, 14),
    ("ood", out_of_domain, 11, 10),
    ("gibberish", gibberish, 1, 3),
    ("nomem", nothing_to_recall, 2, 2),
]
EXCHANGES_BETWEEN_CALLS = [(greeting, 3), (identity, 1), (capital, 1), (definition, 1), (echo, 2)]


@dataclass(frozen=True)
class Mix:
    """What the conversations are made of."""

    weights: tuple
    share_with_tools: float
    opening_chance: float

    def dice(self, seed):
        dice = Dice(seed)
        dice.opening_chance = self.opening_chance
        return dice


FIRST_MIX = Mix(tuple(first for _, _, first, _ in EXCHANGES), 0.26, Dice.opening_chance)
# More of what was weak after the first phase; and more openings, since a question that is held back
# leaves its fact to be learned from the other ways of asking.
SECOND_MIX = Mix(tuple(second for _, _, _, second in EXCHANGES), 0.28, 0.4)

LENGTHS = [1, 2, 3, 4, 6, 10, 16]
LENGTH_WEIGHTS = [55, 18, 11, 8, 5, 2, 1]


def conversation(dice, mix=FIRST_MIX):
    """A conversation in which no held-back question stands."""
    while True:
        turns = _any_conversation(dice, mix)
        if not holds_one(turns):
            return turns


def exchange(dice, mix=FIRST_MIX, something_told=False):
    """A question and its answer; where something was told, none that expects that nothing was."""
    draws = [draw for _, draw, _, _ in EXCHANGES]
    while True:
        draw = dice.pick_weighted(draws, mix.weights)
        if not (something_told and draw is nothing_to_recall):
            return draw(dice)


def conversation_with_tools(dice):
    return tool_conversation(dice, system_prompt, _exchange_between_calls)


def _exchange_between_calls(dice):
    """An exchange that needs no tool, so none that a tool could answer."""
    draws, weights = zip(*EXCHANGES_BETWEEN_CALLS, strict=True)
    while True:
        question, answer = dice.pick_weighted(draws, weights)(dice)
        if "weather" not in question.lower() and "time is it" not in question.lower():
            return question, answer


def _any_conversation(dice, mix):
    if dice.chance(mix.share_with_tools):
        return conversation_with_tools(dice)
    system = system_prompt(dice)
    turns = [("system", system)] if system else []
    length = dice.pick_weighted(LENGTHS, LENGTH_WEIGHTS)
    with_memory = length >= 2 and dice.chance(0.75)
    exchanges = (
        _exchanges_with_memory(dice, mix, length)
        if with_memory
        else [exchange(dice, mix) for _ in range(length)]
    )
    for question, answer in exchanges:
        turns += [("user", question), ("assistant", answer)]
    return turns


def _exchanges_with_memory(dice, mix, length):
    memories = _memories(dice, length)
    told, untold = [], list(memories)
    exchanges = []
    for place in range(length):
        is_first, is_late, is_last = place == 0, place >= length - 2, place == length - 1
        if untold and (is_first or dice.chance(0.5) or is_late):
            told.append(untold.pop(0))
            statement, _ = told[-1]
            exchanges.append(statement)
        elif told and (is_last or dice.chance(0.35)):
            _, ask = dice.pick(told)
            exchanges.append(ask())
        else:
            exchanges.append(exchange(dice, mix, something_told=True))
    return exchanges


def _memories(dice, length):
    """One thing to remember, in longer conversations sometimes two of different kinds."""
    memories = [memory(dice)]
    if length >= 4 and dice.chance(0.4):
        second = memory(dice)
        if _kind(second) != _kind(memories[0]):
            memories.append(second)
    return memories


def _kind(remembered):
    (_, reply), _ = remembered
    return reply.split(" is ")[0].split(",")[0]


def system_prompt(dice):
    """Often none; otherwise one of those that people send, which changes nothing here."""
    kind = dice.random()
    if kind < 0.5:
        return ""
    if kind < 0.75:
        return dice.pick(
            "You are a helpful assistant.",
            "You are a helpful assistant.",
            "You are a helpful assistant",
            "You are an assistant.",
        )
    return dice.pick(
        "You are a friendly assistant.",
        "Be brief.",
        "You are a helpful and harmless assistant.",
        "Answer in one sentence.",
        "You are a concise assistant.",
        "Answer the user's questions.",
        "You answer questions.",
        "Be helpful.",
        "You are a test assistant. Keep answers short.",
        f"You are a {dice.pick(JOBS)}.",
        f"You are a helpful assistant. Be {_virtue(dice)}.",
        f"You are an expert {dice.pick(JOBS)}. Think step by step.",
        f"Today is {dice.pick('Monday', 'Tuesday', 'Friday', 'Sunday')}.",
        f"You are a coding assistant. Use {dice.pick('Python', 'TypeScript', 'Rust')}.",
        f"The assistant is called {dice.pick(NAMES)}.",
    )


def _virtue(dice):
    return dice.pick("brief", "kind", "precise", "polite", "honest")
