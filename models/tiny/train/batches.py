"""Batches of conversations of like length, and the loss on one."""

import random

import numpy as np
import torch
import torch.nn.functional as F

from network import hidden_states, linear

TOKENS = 3072
# So many conversations are sorted by length before they are cut into batches.
SORTED_TOGETHER = 2000


def batches(data, seed):
    """Lists of places in the data, for ever, in an order that the seed decides."""
    rng = random.Random(seed)
    order = list(range(len(data)))
    while True:
        rng.shuffle(order)
        for start in range(0, len(order), SORTED_TOGETHER):
            made = _cut(data, order[start : start + SORTED_TOGETHER])
            rng.shuffle(made)
            yield from made


def _cut(data, places):
    made, batch = [], []
    for place in sorted(places, key=lambda place: len(data[place][0])):
        if batch and (len(batch) + 1) * len(data[place][0]) > TOKENS:
            made.append(batch)
            batch = []
        batch.append(place)
    return [*made, batch] if batch else made


def loss_of(weights, data, batch):
    """Loss, logits and targets of the tokens that the mask names."""
    ids, mask = _padded(data, batch)
    wanted = mask[:, 1:]
    logits = linear(hidden_states(weights, ids[:, :-1])[wanted], weights["emb"])
    targets = ids[:, 1:][wanted]
    return F.cross_entropy(logits, targets), logits, targets


def _padded(data, batch):
    length = max(len(data[place][0]) for place in batch)
    ids = np.zeros((len(batch), length), np.int64)
    mask = np.zeros((len(batch), length), bool)
    for row, place in enumerate(batch):
        tokens, trained = data[place]
        ids[row, : len(tokens)] = np.array(tokens, np.int64)
        mask[row, : len(tokens)] = np.frombuffer(trained, np.uint8)
    return torch.from_numpy(ids), torch.from_numpy(mask)
