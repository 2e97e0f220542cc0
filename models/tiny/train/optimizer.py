"""Muon for the matrices of the layers, AdamW for the embedding and the norms."""

import torch

ADAM_RATE = 4e-3
MUON_RATE = 2e-2
WEIGHT_DECAY = 0.02
MOMENTUM = 0.95
# Matrices, and how many of them lie in one tensor: each is made orthogonal by itself.
PARTS = {"qkv": 3, "o": 1, "gu": 2, "down": 1}


def _kind(name):
    return name.split(".")[-1]


class Optimizer:
    def __init__(self, weights):
        self.weights = weights
        self.matrices = [name for name in weights if _kind(name) in PARTS]
        others = [weights[name] for name in weights if _kind(name) not in PARTS]
        self.others = others
        self.adam = torch.optim.AdamW(
            [
                {"params": [w for w in others if w.dim() == 2], "weight_decay": WEIGHT_DECAY},
                {"params": [w for w in others if w.dim() == 1], "weight_decay": 0.0},
            ],
            lr=ADAM_RATE,
            betas=(0.9, 0.98),
            eps=1e-9,
        )
        self.momentum = {name: torch.zeros_like(weights[name]) for name in self.matrices}

    def state(self):
        return {"adam": self.adam.state_dict(), "momentum": self.momentum}

    def load(self, state):
        self.adam.load_state_dict(state["adam"])
        self.momentum = state["momentum"]

    def step(self, share):
        """One step at this share of the full rates; the gradients are used up."""
        for group in self.adam.param_groups:
            group["lr"] = ADAM_RATE * share
        torch.nn.utils.clip_grad_norm_(self.others, 1.0)
        with torch.no_grad():
            for name in self.matrices:
                self._muon_step(name, MUON_RATE * share)
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)

    def _muon_step(self, name, rate):
        weight, momentum = self.weights[name], self.momentum[name]
        gradient = weight.grad
        momentum.mul_(MOMENTUM).add_(gradient, alpha=1 - MOMENTUM)
        update = gradient.mul(1 - MOMENTUM).add_(momentum, alpha=MOMENTUM)
        parts = update.chunk(PARTS[_kind(name)])
        direction = torch.cat([_orthogonal(part) * _gain(part) for part in parts])
        weight.mul_(1 - rate * WEIGHT_DECAY).add_(direction, alpha=-rate)
        weight.grad = None


def _gain(matrix):
    rows, columns = matrix.shape
    return max(1, rows / columns) ** 0.5


def _orthogonal(gradient):
    """Five steps of the Newton-Schulz iteration, with Muon's coefficients."""
    x = (gradient / (gradient.norm() + 1e-7)).bfloat16()
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.t()
    for _ in range(5):
        a = x @ x.t()
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.t() if tall else x).float()
