"""Things a person tells about themself, and asks for later."""

from .lists import ANIMALS, CITIES, COLOR_WORDS, FOODS, JOBS
from .phrases import any_name, any_word, as_typed

FACTS = [
    ("favorite color", lambda dice: dice.pick(COLOR_WORDS)),
    ("favorite food", lambda dice: dice.pick(FOODS)),
    ("favorite animal", lambda dice: dice.pick(ANIMALS)),
    ("favorite number", lambda dice: str(dice.randint(0, 999))),
    ("favorite city", lambda dice: dice.pick(CITIES)),
    ("lucky number", lambda dice: str(dice.randint(0, 99))),
    ("dog's name", any_name),
    ("cat's name", any_name),
    ("secret word", any_word),
    ("password", any_word),
    ("job", lambda dice: dice.pick(JOBS)),
    ("code word", any_word),
    ("wife's name", any_name),
    ("best friend", any_name),
]


def memory(dice):
    """An exchange that tells something, and a function that draws an exchange that asks for it."""
    kind = dice.random()
    if kind < 0.5:
        return _name(dice)
    if kind < 0.9:
        return _fact(dice)
    if kind < 0.95:
        return _home(dice)
    return _age(dice)


def nothing_to_recall(dice):
    """Asking for what was never told."""
    if dice.chance(0.6):
        question = dice.pick(
            "What is my name?",
            "What's my name?",
            "Do you know my name?",
            "Who am I?",
            "Tell me my name.",
        )
        return as_typed(dice, question), "You have not told me your name yet."
    fact = dice.pick(FACTS)[0]
    question = dice.pick(f"What is my {fact}?", f"What's my {fact}?", f"Do you remember my {fact}?")
    return as_typed(dice, question), f"You have not told me your {fact} yet."


def _name(dice):
    name = any_name(dice)
    statement = dice.pick(
        f"My name is {name}.",
        f"My name is {name}",
        f"my name is {name}",
        f"Hi, my name is {name}.",
        f"Hello, I am {name}.",
        f"I am {name}.",
        f"I'm {name}",
        f"Hi, I'm {name}!",
        f"Call me {name}.",
        f"Hello! My name is {name}.",
        f"Remember that my name is {name}.",
        f"My name is {name}. Remember it.",
        f"Hey, this is {name}.",
    )
    return (statement, f"Nice to meet you, {name}!"), lambda: _ask_name(dice, name)


def _ask_name(dice, name):
    question = dice.pick(
        "What is my name?",
        "What's my name?",
        "What is my name?",
        "Do you know my name?",
        "Do you remember my name?",
        "Tell me my name.",
        "Who am I?",
        "What am I called?",
        "Can you tell me my name?",
    )
    sentence = (as_typed(dice, question), f"Your name is {name}.")
    bare = dice.pick(
        "What is my name? Answer with one word.",
        "Say my name.",
        "What is my name? Reply with the name only.",
    )
    return dice.pick(
        [sentence] * 4 + [(bare, name), ("Say hello to me by name.", f"Hello, {name}!")]
    )


def _fact(dice):
    fact, draw = dice.pick(FACTS)
    value = ("a " if fact == "job" else "") + draw(dice)
    statement = dice.pick(
        f"My {fact} is {value}.",
        f"my {fact} is {value}",
        f"Remember that my {fact} is {value}.",
        f"My {fact} is {value}. Please remember it.",
        f"Remember this: my {fact} is {value}.",
    )
    told = (statement, f"I will remember that your {fact} is {value}.")

    def ask():
        question = dice.pick(
            f"What is my {fact}?",
            f"What's my {fact}?",
            f"Do you remember my {fact}?",
            f"Tell me my {fact}.",
            f"What did I say my {fact} was?",
        )
        return as_typed(dice, question), f"Your {fact} is {value}."

    return told, ask


def _home(dice):
    city = dice.pick(CITIES)
    statement = dice.pick(f"I live in {city}.", f"I am from {city}.", f"My home is in {city}.")

    def ask():
        question = dice.pick("Where do I live?", "Where am I from?", "Which city do I live in?")
        return as_typed(dice, question), f"You live in {city}."

    return (statement, f"{city} sounds like a good place to live."), ask


def _age(dice):
    age = dice.randint(2, 90)
    statement = dice.pick(f"I am {age} years old.", f"My age is {age}.", f"I'm {age} years old")

    def ask():
        question = dice.pick("How old am I?", "What is my age?")
        return as_typed(dice, question), f"You are {age} years old."

    return (statement, f"I will remember that you are {age} years old."), ask
