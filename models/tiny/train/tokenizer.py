"""Byte-level BPE, written for this model.

On the text used here its words are those of llama.cpp's pre-tokenizer "qwen2", so that the engine
cuts text exactly as the training did.
"""

import re
from collections import Counter, defaultdict
from itertools import pairwise

WORD = re.compile(
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    r"|(?:[^\w\r\n]|_)?[^\W\d_]+"
    r"|\d"
    r"| ?(?:[^\s\w]|_)+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)
CONTROL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SPECIAL_TOKENS = CONTROL_TOKENS + [
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<tools>",
    "</tools>",
]
SPECIAL = re.compile("(" + "|".join(re.escape(token) for token in SPECIAL_TOKENS) + ")")
FEWEST_OCCURRENCES = 4
UNRANKED = 1 << 30


def _letters_of_bytes():
    """A printable letter for each byte, as GPT-2 chose them."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable}
    letters.update({byte: chr(256 + place) for place, byte in enumerate(others)})
    return letters


LETTERS = _letters_of_bytes()


def _letters(word):
    return [LETTERS[byte] for byte in word.encode()]


def _merged(letters, pair):
    merged, place = [], 0
    while place < len(letters):
        if tuple(letters[place : place + 2]) == pair:
            merged.append(pair[0] + pair[1])
            place += 2
        else:
            merged.append(letters[place])
            place += 1
    return merged


def train(texts, size):
    """The most frequent pairs of letters become one token each, until there are `size` tokens."""
    words = _counted_words(texts)
    pairs, places = Counter(), defaultdict(set)
    for place, (letters, count) in enumerate(words):
        for pair in pairwise(letters):
            pairs[pair] += count
            places[pair].add(place)
    merges = []
    while len(merges) < size - len(LETTERS) - len(SPECIAL_TOKENS):
        best, occurrences = max(pairs.items(), key=lambda item: (item[1], item[0]))
        if occurrences < 2:
            break
        merges.append(best)
        for place in list(places[best]):
            letters, count = words[place]
            for pair in pairwise(letters):
                pairs[pair] -= count
            letters = _merged(letters, best)
            words[place] = (letters, count)
            for pair in pairwise(letters):
                pairs[pair] += count
                places[pair].add(place)
        del pairs[best], places[best]
    return {"tokens": _tokens(merges, size), "merges": [list(pair) for pair in merges]}


def _counted_words(texts):
    counts = Counter()
    for text in texts:
        for part in SPECIAL.split(text)[::2]:
            counts.update(WORD.findall(part))
    return [
        (_letters(word), count) for word, count in counts.items() if count >= FEWEST_OCCURRENCES
    ]


def _tokens(merges, size):
    tokens = [LETTERS[byte] for byte in range(256)] + [one + two for one, two in merges]
    assert len(set(tokens)) == len(tokens)
    tokens += [f"[unused{place}]" for place in range(len(tokens), size - len(SPECIAL_TOKENS))]
    return tokens + SPECIAL_TOKENS


class Tokenizer:
    def __init__(self, trained):
        self.ids = {token: place for place, token in enumerate(trained["tokens"])}
        self.ranks = {tuple(pair): rank for rank, pair in enumerate(trained["merges"])}
        self.known_words = {}

    def encode(self, text):
        """Token ids; special tokens in the text are taken as such."""
        ids = []
        for place, part in enumerate(SPECIAL.split(text)):
            if place % 2:
                ids.append(self.ids[part])
            else:
                for word in WORD.findall(part):
                    ids += self._encode_word(word)
        return ids

    def _encode_word(self, word):
        ids = self.known_words.get(word)
        if ids is None:
            ids = self.known_words[word] = [self.ids[letters] for letters in self._pieces(word)]
        return ids

    def _pieces(self, word):
        pieces = _letters(word)
        while len(pieces) > 1:
            ranked = [self.ranks.get(pair, UNRANKED) for pair in pairwise(pieces)]
            rank = min(ranked)
            if rank == UNRANKED:
                break
            place = ranked.index(rank)
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
        return pieces


def render(turns):
    """A conversation as text, as the chat template writes it."""
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns)


def encode_conversation(tokenizer, turns):
    """Token ids, and a mask that is 1 on each token that the model is trained to produce."""
    ids, mask = [], []
    for role, text in turns:
        before = tokenizer.encode(f"<|im_start|>{role}\n")
        said = tokenizer.encode(f"{text}<|im_end|>")
        after = tokenizer.encode("\n")
        ids += before + said + after
        mask += [0] * len(before) + [int(role == "assistant")] * len(said) + [0] * len(after)
    return ids, mask
