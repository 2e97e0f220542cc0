"""A task for a tool, and the schema of a tool as clients send it."""

from dataclasses import dataclass

NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}


@dataclass
class ToolTask:
    schema: dict
    question: str
    arguments: dict
    result: object
    answer: str

    @property
    def name(self):
        return self.schema["function"]["name"]


def string(description=None):
    return {"type": "string", **({"description": description} if description else {})}


def schema(name, description, properties, required=None):
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
    }
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}
