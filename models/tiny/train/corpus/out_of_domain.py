"""Questions and tasks that the model must decline, with one answer for each of the two."""

from .lists import CAPITALS, CITIES, COMMON_WORDS, JOBS, read_words
from .phrases import any_name, any_word, any_words, as_typed, common_words, made_up_word

TOPICS = read_words("topics.txt")
COUNTRIES = sorted(country for country, _ in CAPITALS)
PEOPLE = (
    "Napoleon Einstein Shakespeare Cleopatra Mozart Newton Darwin Picasso Plato Caesar"
    " Gandhi Lincoln Beethoven Tesla Edison Curie Galileo Columbus Homer Dante"
).split()
LANGUAGES = ("Python", "JavaScript", "Rust", "Go", "C", "Java", "SQL", "TypeScript", "Bash")

DO_NOT_KNOW = "I do not know that. I am only a tiny demo model. Add a provider for a real answer."
TOO_HARD = "That is too hard for me. I am only a tiny demo model. Add a provider for a real answer."


class Subjects:
    """What one question is about."""

    def __init__(self, dice):
        self.topic = dice.pick(TOPICS).replace("-", " ")
        self.other_topic = dice.pick(TOPICS).replace("-", " ")
        self.word = any_word(dice)
        self.noun = dice.pick(COMMON_WORDS)
        self.number = dice.randint(2, 2000)
        self.person = dice.pick(PEOPLE)
        self.language = dice.pick(LANGUAGES)
        self.country = dice.pick(COUNTRIES)
        self.city = dice.pick(CITIES)


def out_of_domain(dice):
    about = Subjects(dice)
    # Both lists are drawn though one is used: the weights that ship were trained on these draws.
    questions = _questions(dice, about)
    tasks = _tasks(dice, about)
    if dice.chance(0.5):
        return as_typed(dice, dice.pick(questions)), DO_NOT_KNOW
    return as_typed(dice, dice.pick(tasks)), TOO_HARD


def _questions(dice, about):
    return [
        f"Who was {about.person}?",
        f"When was {about.person} born?",
        f"What did {about.person} do?",
        f"Tell me about {about.person}.",
        f"When did {about.person} die?",
        f"Who is the president of {about.country}?",
        f"What is the population of {about.country}?",
        f"How many people live in {about.city}?",
        f"What is the history of {about.country}?",
        f"What is the currency of {about.country}?",
        f"Who won the world cup in {about.number}?",
        f"What happened in {about.number}?",
        f"How far is {about.city} from {dice.pick(CITIES)}?",
        f"What is the best restaurant in {about.city}?",
        f"What is the tallest building in {about.city}?",
        f"Who invented the {about.noun}?",
        f"Who wrote the book {about.noun} and {dice.pick(COMMON_WORDS)}?",
        f"What is the price of {about.noun}?",
        f"How much does a {about.noun} cost?",
        f"Where can I buy a {about.noun}?",
        f"What is {made_up_word(dice, 2)}?",
        f"Define {made_up_word(dice, 2)}.",
        f"Who is {any_name(dice)} {made_up_word(dice, 2).capitalize()}?",
        f"What is the latest news about {about.topic}?",
        f"What do you think about {about.topic}?",
        f"Is {about.topic} better than {about.other_topic}?",
        f"What is the difference between {about.topic} and {about.other_topic}?",
        f"Why is {about.topic} important?",
        f"How does {about.topic} work?",
        f"What is the future of {about.topic}?",
        f"Give me some facts about {about.topic}.",
        f"What is the square root of {about.number}?",
        f"What is {dice.randint(100, 9999)} * {dice.randint(100, 9999)}?",
        f"What is {dice.randint(100, 9999)} / {dice.randint(3, 99)}?",
        f"What is {dice.randint(200, 9999)} + {dice.randint(200, 9999)}?",
        "Why is the sky blue?",
        f"Why do {about.noun}s {dice.pick('sing', 'sleep', 'move', 'work', 'grow')}?",
        f"How do I get to {about.city}?",
        "Which movie should I watch?",
        "What should I eat tonight?",
        "What stocks should I buy?",
        f"Is {about.noun} good for me?",
        f"Can a {about.noun} fly?",
        f"Does {any_name(dice)} like {about.noun}?",
        f"What is the chemical formula of {about.noun}?",
        f"How heavy is a {about.noun}?",
        f"How old is the {about.noun}?",
        f"How tall is {about.person}?",
    ]


def _tasks(dice, about):
    return [
        f"Write an essay about {about.topic}.",
        f"Write a {about.language} function that {_job_of_a_function(dice)}.",
        f"Explain {about.topic} to me.",
        f"Explain {about.topic} in simple terms.",
        f"Explain the theory of {about.topic}.",
        f"Fix this code: {about.language.lower()} {about.word}({about.noun})",
        f"Fix the bug in my {about.language} code.",
        f"How do I learn {about.topic}?",
        f"Summarize this text: {any_words(dice, 4, 14)}.",
        "Summarize the following article.",
        f"Write an email to {any_name(dice)} about {about.topic}.",
        f"Write a letter to my {about.noun}.",
        f"Plan a trip to {about.city}.",
        f"Give me a recipe for {about.noun}.",
        f"Create a plan for {about.topic}.",
        f"Design a {about.noun} for {about.topic}.",
        f"Translate this to {_foreign_language(dice)}: {common_words(dice, 2, 6)}",
        f"Translate this sentence to French: the {about.noun} is in the {dice.pick(COMMON_WORDS)}.",
        f"Solve this equation: {_equation(dice)}",
        f"Solve x^2 = {about.number}.",
        f"Prove that {about.word} is {about.noun}.",
        f"Compare {about.topic} and {about.other_topic}.",
        f"Review my {dice.pick('code', 'essay', 'plan', 'resume', 'pull request')}.",
        "Refactor this function.",
        f"Write unit tests for {about.word}.",
        f"Generate a report on {about.topic}.",
        f"Make a table of {about.topic} and {about.other_topic}.",
        f"Help me with my {about.topic} homework.",
        f"Help me write a {about.noun} about {about.topic}.",
        f"Build an app for {about.topic}.",
        f"Implement a {about.noun} in {about.language}.",
        f"What does this error mean: {about.word} {about.noun} not found",
        f"How do I fix a {about.noun} error in {about.language}?",
        f"Write a song about {about.topic} in the style of {about.person}.",
        f"Rewrite this sentence: {any_words(dice, 4, 10)}.",
        f"Give me {dice.randint(3, 20)} ideas for {about.topic}.",
        f"How do I install {about.topic}?",
        f"How can I become a {dice.pick(JOBS)}?",
        f"Act as a {dice.pick(JOBS)}.",
        f"Pretend you are a {dice.pick(JOBS)}.",
        f"Teach me {about.topic}.",
        f"Write a {about.number} word article about {about.topic}.",
        f"Analyze this data: {_numbers(dice)}",
        f"Classify this text: {any_words(dice, 3, 8)}",
        f"Draw a picture of a {about.noun}.",
        f"Write a regex that matches {about.noun}.",
        f"Please refactor {about.word}.ts to use {about.noun}.",
    ]


def _job_of_a_function(dice):
    return dice.pick(
        "sorts a list",
        "reads a file",
        "finds prime numbers",
        "sends an email",
        "parses JSON",
        "reverses a string",
        "computes a hash",
        "connects to a database",
    )


def _foreign_language(dice):
    return dice.pick("Japanese", "Chinese", "Korean", "Russian", "Arabic", "Italian")


def _equation(dice):
    return f"{dice.randint(2, 9)}x + {dice.randint(2, 99)} = {dice.randint(10, 200)}"


def _numbers(dice):
    return ", ".join(str(dice.randint(0, 99)) for _ in range(dice.randint(3, 8)))
