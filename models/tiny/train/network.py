"""The model: a small llama with tied embeddings. Its weights are one dictionary of tensors."""

import math

import torch
import torch.nn.functional as F

CONFIG = {
    "vocab": 1536,
    "d": 160,
    "layers": 6,
    "heads": 5,
    "ffn": 448,
    "ctx": 2048,
    "eps": 1e-5,
    "theta": 10000.0,
}
VOCABULARY, WIDTH, LAYERS = CONFIG["vocab"], CONFIG["d"], CONFIG["layers"]
HEADS, FFN = CONFIG["heads"], CONFIG["ffn"]
HEAD_WIDTH = WIDTH // HEADS
LONGEST = 1024
SEED = 7

_frequencies = 1.0 / CONFIG["theta"] ** (torch.arange(0, HEAD_WIDTH, 2).float() / HEAD_WIDTH)
_angles = torch.outer(torch.arange(CONFIG["ctx"]).float(), _frequencies)
COSINES = torch.cat([_angles.cos()] * 2, -1)
SINES = torch.cat([-_angles.sin(), _angles.sin()], -1)
FUTURE = torch.full((LONGEST, LONGEST), float("-inf")).triu(1)


def initial_weights():
    seed = torch.Generator().manual_seed(SEED)

    def normal(*shape, deviation):
        return torch.randn(*shape, generator=seed) * deviation

    # What writes into the residual stream starts smaller the deeper the model is.
    residual = 1 / math.sqrt(2 * LAYERS)
    weights = {"emb": normal(VOCABULARY, WIDTH, deviation=0.05), "norm": torch.ones(WIDTH)}
    for i in range(LAYERS):
        weights[f"{i}.an"] = torch.ones(WIDTH)
        weights[f"{i}.fn"] = torch.ones(WIDTH)
        weights[f"{i}.qkv"] = normal(3 * WIDTH, WIDTH, deviation=WIDTH**-0.5)
        weights[f"{i}.o"] = normal(WIDTH, WIDTH, deviation=WIDTH**-0.5 * residual)
        weights[f"{i}.gu"] = normal(2 * FFN, WIDTH, deviation=WIDTH**-0.5)
        weights[f"{i}.down"] = normal(WIDTH, FFN, deviation=FFN**-0.5 * residual)
    return {name: weight.requires_grad_() for name, weight in weights.items()}


def linear(x, weight):
    """In bfloat16: four times as fast on processors that know it."""
    return (x.bfloat16() @ weight.bfloat16().t()).float()


def hidden_states(weights, ids):
    x = F.embedding(ids, weights["emb"])
    for i in range(LAYERS):
        x = x + _attention(weights, i, _normed(x, weights[f"{i}.an"]))
        x = x + _feed_forward(weights, i, _normed(x, weights[f"{i}.fn"]))
    return _normed(x, weights["norm"])


def _attention(weights, i, x):
    batch, length, _ = x.shape
    qkv = linear(x, weights[f"{i}.qkv"]).view(batch, length, 3, HEADS, HEAD_WIDTH)
    q, k, v = qkv.permute(2, 0, 3, 1, 4)
    q, k = _rotated(q, length), _rotated(k, length)
    scores = q @ k.transpose(-1, -2) * HEAD_WIDTH**-0.5 + FUTURE[:length, :length]
    mixed = (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, length, WIDTH)
    return linear(mixed, weights[f"{i}.o"])


def _feed_forward(weights, i, x):
    h = linear(x, weights[f"{i}.gu"])
    return linear(F.silu(h[..., :FFN]) * h[..., FFN:], weights[f"{i}.down"])


def _normed(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + CONFIG["eps"]) * weight


def _rotated(x, length):
    half = HEAD_WIDTH // 2
    turned = torch.cat([x[..., half:], x[..., :half]], -1)
    return x * COSINES[:length] + turned * SINES[:length]
