"""Tasks for a tool: its schema, a question, the call that it needs, a result, and the answer."""

from .lists import CITIES
from .made_up_tool import made_up_tool
from .phrases import any_name, common_words, made_up_word
from .tool_schema import NUMBER, ToolTask, schema, string

WEATHERS = "sunny cloudy rainy windy snowy foggy clear stormy".split()
CURRENCIES = "USD EUR GBP JPY CHF CAD".split()


def weather(dice):
    city = dice.pick(CITIES) if dice.chance(0.8) else made_up_word(dice, 2).capitalize()
    parameter = dice.pick("city", "city", "location", "location", "place")
    name = dice.pick(
        "get_weather",
        "get_weather",
        "get_weather",
        "weather",
        "get_current_weather",
        "getWeather",
        "current_weather",
    )
    description = dice.pick(
        None, "City name", "The city", "The city and state, e.g. San Francisco, CA"
    )
    properties = {parameter: string(description)}
    if dice.chance(0.25):
        properties["unit"] = {"type": "string", "enum": ["celsius", "fahrenheit"]}
    degrees, sky = dice.randint(-9, 39), dice.pick(WEATHERS)
    result, unit = dice.pick(
        ({parameter: city, "temperature": degrees, "condition": sky}, " degrees"),
        ({"temperature": degrees, "condition": sky}, " degrees"),
        ({"temp": degrees, "conditions": sky}, " degrees"),
        ({"temperature": degrees, "unit": "celsius", "condition": sky}, " degrees"),
        (f"{degrees} degrees, {sky}", " degrees"),
        (f"{sky}, {degrees} C", " degrees"),
        (f"{sky.capitalize()}, {degrees}°C", "°C"),
        ({"temperature": f"{degrees}°C", "condition": sky}, "°C"),
    )
    question = dice.pick(
        f"What is the weather in {city}?",
        f"What's the weather in {city}?",
        f"What is the weather like in {city}?",
        f"How is the weather in {city} today?",
        f"Weather in {city}?",
        f"weather in {city}",
        f"Tell me the weather in {city}.",
        f"Is it raining in {city}?",
        f"What's the weather like in {city} right now?",
        f"Get the weather for {city}.",
        f"How warm is it in {city}?",
    )
    purpose = dice.pick(
        "Get the weather for a city",
        "Get the current weather",
        "Get weather",
        "Get the current weather in a given location",
        "Returns the weather of a city",
    )
    answer = f"The weather in {city} is {sky}, {degrees}{unit}."
    tool = schema(name, purpose, properties, [parameter])
    return ToolTask(tool, question, {parameter: city}, result, answer)


def time(dice):
    city = dice.pick(CITIES)
    parameter = dice.pick("city", "location", "timezone", "place")
    clock = f"{dice.randint(0, 23):02d}:{dice.randint(0, 59):02d}"
    tool = schema(
        dice.pick("get_time", "get_current_time", "current_time", "getTime"),
        dice.pick("Get the current time in a city", "Get the time", "Returns the current time"),
        {parameter: string()},
    )
    question = dice.pick(
        f"What time is it in {city}?",
        f"What is the time in {city}?",
        f"Tell me the time in {city}.",
        f"Current time in {city}?",
    )
    result = dice.pick({"time": clock}, clock, {parameter: city, "time": clock})
    return ToolTask(tool, question, {parameter: city}, result, f"The time in {city} is {clock}.")


def calculation(dice):
    one, two = dice.randint(2, 999), dice.randint(2, 999)
    operator = dice.pick("+", "-", "*", "/")
    if dice.chance(0.5):
        return _expression(dice, f"{one} {operator} {two}", _value(one, operator, two))
    return _addition(dice, one, two)


def _value(one, operator, two):
    values = {"+": one + two, "-": one - two, "*": one * two, "/": round(one / two, 2)}
    return values[operator]


def _expression(dice, expression, value):
    tool = schema(
        dice.pick("calculator", "calculate", "calc", "evaluate"),
        dice.pick("Evaluate a math expression", "Do arithmetic", "Calculate"),
        {"expression": string()},
    )
    question = dice.pick(
        f"What is {expression}?", f"Calculate {expression}", f"Compute {expression}.", expression
    )
    result = dice.pick({"result": value}, str(value))
    return ToolTask(tool, question, {"expression": expression}, result, f"{expression} = {value}")


def _addition(dice, one, two):
    tool = schema(
        dice.pick("add", "add_numbers", "sum"),
        dice.pick("Add two numbers", "Returns the sum of two numbers"),
        {"a": NUMBER, "b": NUMBER},
    )
    question = dice.pick(
        f"Add {one} and {two}.", f"What is {one} plus {two}?", f"What is {one} + {two}?"
    )
    result = dice.pick({"result": one + two}, str(one + two))
    return ToolTask(tool, question, {"a": one, "b": two}, result, f"{one} + {two} = {one + two}")


def search(dice):
    wanted = common_words(dice, 1, 4)
    found = common_words(dice, 2, 4)
    parameter = dice.pick("query", "query", "q", "text", "term")
    tool = schema(
        dice.pick("search", "web_search", "search_web", "search_docs", "find", "lookup"),
        dice.pick("Search the web", "Search for documents", "Search", "Find information"),
        {parameter: string()},
    )
    question = dice.pick(
        f"Search for {wanted}.",
        f"Search the web for {wanted}",
        f"Find {wanted}",
        f"Look up {wanted}.",
        f"search {wanted}",
    )
    result = dice.pick({"result": found}, found, {"results": [found]})
    return ToolTask(tool, question, {parameter: wanted}, result, f"I found this: {found}")


def two_arguments(dice):
    return _message(dice) if dice.chance(0.5) else _conversion(dice)


def _message(dice):
    name, text = any_name(dice), common_words(dice, 1, 3)
    to, body = dice.pick(
        ("to", "text"), ("recipient", "message"), ("to", "body"), ("name", "message")
    )
    tool = schema(
        dice.pick("send_message", "send_email", "sendMessage", "send_sms"),
        "Send a message to a person",
        {to: string(), body: string()},
    )
    question = dice.pick(
        f"Send {name} the message {text}.",
        f"Tell {name}: {text}",
        f"Send a message to {name}: {text}",
        f"Write {text} to {name}.",
    )
    result = dice.pick({"status": "ok"}, "sent", {"sent": True})
    return ToolTask(
        tool, question, {to: name, body: text}, result, f"I sent the message to {name}."
    )


def _conversion(dice):
    amount = dice.randint(1, 999)
    source, target = dice.sample(CURRENCIES, 2)
    value = dice.randint(1, 9999)
    tool = schema(
        dice.pick("convert", "convert_currency"),
        "Convert an amount of money",
        {"amount": NUMBER, "from": string(), "to": string()},
    )
    question = dice.pick(
        f"Convert {amount} {source} to {target}.", f"How much is {amount} {source} in {target}?"
    )
    result = dice.pick({"result": value}, str(value))
    arguments = {"amount": amount, "from": source, "to": target}
    return ToolTask(tool, question, arguments, result, f"{amount} {source} is {value} {target}.")


# One entry of the list is drawn, so what stands in it three times comes three times as often.
TASKS = [
    weather,
    weather,
    weather,
    time,
    calculation,
    search,
    made_up_tool,
    made_up_tool,
    made_up_tool,
    two_arguments,
]
