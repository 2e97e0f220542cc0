"""Draws the conversations, trains the tokenizer on some, and writes them all as token ids.

    python3 prepare.py FOLDER

writes tokenizer.json, and for each phase of the training its data. All come out byte for byte the
same everywhere.
"""

import array
import json
import pickle
import sys
from pathlib import Path

import tokenizer as bpe
from corpus.conversations import FIRST_MIX, SECOND_MIX, conversation

TOKENS = 1536
TOKENIZER_CONVERSATIONS, TOKENIZER_SEED = 20_000, 1
# file, mix, seed, number of conversations
PHASES = [("first.pkl", FIRST_MIX, 2, 150_000), ("second.pkl", SECOND_MIX, 5, 70_000)]
VALIDATION_CONVERSATIONS, VALIDATION_SEED = 800, 3
LONGEST = 1024


def train_tokenizer():
    dice = FIRST_MIX.dice(TOKENIZER_SEED)
    texts = (bpe.render(conversation(dice)) for _ in range(TOKENIZER_CONVERSATIONS))
    return bpe.train(texts, TOKENS)


def encoded_conversations(tokenizer, dice, mix, count):
    """Pairs of token ids and mask, each in as few bytes as it takes."""
    encoded = []
    while len(encoded) < count:
        ids, mask = bpe.encode_conversation(tokenizer, conversation(dice, mix))
        if len(ids) <= LONGEST:
            encoded.append((array.array("H", ids), bytes(mask)))
    return encoded


def write_data(path, data):
    """Under another name first: the file is there only when it is whole."""
    part = path.with_suffix(".part")
    with open(part, "wb") as file:
        pickle.dump(data, file, protocol=4)
    part.rename(path)


def main():
    folder = Path(sys.argv[1])
    trained = train_tokenizer()
    with open(folder / "tokenizer.json", "w", encoding="utf-8") as file:
        json.dump(trained, file, ensure_ascii=False)
    tokenizer = bpe.Tokenizer(trained)
    validation = encoded_conversations(
        tokenizer, FIRST_MIX.dice(VALIDATION_SEED), FIRST_MIX, VALIDATION_CONVERSATIONS
    )
    for name, mix, seed, count in PHASES:
        training = encoded_conversations(tokenizer, mix.dice(seed), mix, count)
        write_data(folder / name, (training, validation))
        tokens = sum(len(ids) for ids, _ in training)
        wanted = sum(sum(mask) for _, mask in training)
        print(f"{name}: {count} conversations, {tokens} tokens, of which {wanted} are trained")


if __name__ == "__main__":
    main()
