"""Which questions are held back: about one of twelve, told by the question alone.

No conversation of the training data holds one of them, in any spelling; the evaluation asks them.
"""

import re
import zlib

SHARE = 12
SALT = "13"


def key(question):
    """The question without case and punctuation."""
    return re.sub(r"[^a-z0-9 ]", "", question.lower()).strip()


def is_held_back(question):
    return zlib.crc32(f"{SALT} {key(question)}".encode()) % SHARE == 0


def holds_one(conversation):
    return any(
        role == "user" and not text.startswith("<tool_response>") and is_held_back(text)
        for role, text in conversation
    )
