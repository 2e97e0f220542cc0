"""The OpenAI SDK for Python on `/v1/responses`.

Usage: python-openai.py, with GATEWAY and KEY in the environment. Each line of its input is an object with the act's
name and the model; it prints a line with one JSON object for each.
"""

import json
import os
import sys

import openai
from pydantic import BaseModel

client = openai.OpenAI(
    base_url=os.environ['GATEWAY'], api_key=os.environ['KEY'], max_retries=0
)
model = ''
weather = {
    'type': 'function',
    'name': 'weather',
    'description': 'Tells the weather of a city.',
    'parameters': {
        'type': 'object',
        'properties': {'city': {'type': 'string'}},
        'required': ['city'],
        'additionalProperties': False,
    },
    'strict': True,
}


class Degrees(BaseModel):
    city: str
    degrees: int


def loop(ask):
    """Asks until no tool is called."""
    items = [{'role': 'user', 'content': 'Weather?'}]
    calls = []
    usage = {'inputTokens': 0, 'outputTokens': 0}
    while True:
        answer = ask(items)
        items += answer.output
        usage['inputTokens'] += answer.usage.input_tokens
        usage['outputTokens'] += answer.usage.output_tokens
        made = [item for item in answer.output if item.type == 'function_call']
        if not made:
            return {'text': answer.output_text, 'calls': calls, 'usage': usage}
        for call in made:
            city = json.loads(call.arguments)['city']
            calls.append(city)
            output = {'type': 'function_call_output', 'call_id': call.call_id}
            items.append({**output, 'output': f'sunny in {city}'})


def steps():
    return loop(
        lambda items: client.responses.create(model=model, input=items, tools=[weather])
    )


def stream():
    streamed = []

    def ask(items):
        with client.responses.stream(
            model=model, input=items, tools=[weather]
        ) as events:
            for event in events:
                if event.type == 'response.output_text.delta':
                    streamed.append(event.delta)
                if event.type == 'error':
                    raise RuntimeError(event.message)
            return events.get_final_response()

    told = loop(ask)
    return {**told, 'streamed': ''.join(streamed)}


def typed():
    answer = client.responses.parse(model=model, input='Weather?', text_format=Degrees)
    return {'object': answer.output_parsed.model_dump()}


def chain():
    first = client.responses.create(model=model, input='Weather?')
    second = client.responses.create(
        model=model, input='And tomorrow?', previous_response_id=first.id
    )
    return {'text': second.output_text}


def kept():
    """What can be done with a response that is kept, and what its endpoints say once it is not."""
    first = client.responses.create(model=model, input='Weather?')
    again = client.responses.retrieve(first.id)
    events = [event.type for event in client.responses.retrieve(first.id, stream=True)]
    items = client.responses.input_items.list(first.id)
    count = client.responses.input_tokens.count(model=model, input='And tomorrow?')
    cancelled = refused(lambda: client.responses.cancel(first.id))
    client.responses.delete(first.id)
    return {
        'same': again.model_dump() == first.model_dump(),
        'last': events[-1],
        'items': [item.content[0].text for item in items],
        'count': [count.object, count.input_tokens > 0],
        'cancelled': cancelled,
        'retrieved': refused(lambda: client.responses.retrieve(first.id)),
        'continued': refused(
            lambda: client.responses.create(
                model=model, input='And?', previous_response_id=first.id
            )
        ),
    }


def refused(ask):
    try:
        ask()
    except openai.APIStatusError as error:
        return [error.status_code, error.code]
    return 'answered'


acts = {'steps': steps, 'stream': stream, 'object': typed, 'chain': chain, 'kept': kept}
for line in sys.stdin:
    asked = json.loads(line)
    model = asked['model']
    try:
        told = acts[asked['name']]()
    except Exception as error:
        told = {'thrown': f'{type(error).__name__}: {error}'}
    print(json.dumps(told), flush=True)
