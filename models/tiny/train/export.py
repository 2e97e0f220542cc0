"""Writes the trained model as a GGUF file.

    python3 export.py FOLDER FILE

reads model.pt and tokenizer.json.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from gguf import ALIGNMENT, Kind, Writer
from tokenizer import CONTROL_TOKENS, SPECIAL_TOKENS

TEMPLATE = Path(__file__).parent / "chat_template.jinja"
QUANTIZATION_VERSION, FILE_TYPE_Q8_0 = 2, 7
NORMAL_TOKEN, CONTROL_TOKEN, USER_DEFINED_TOKEN, UNUSED_TOKEN = 1, 3, 4, 5


def add_general(writer, parameters):
    millions = f"{parameters / 1e6:.1f}"
    texts = {
        "architecture": "llama",
        "name": "Tiny demo model",
        "basename": "tiny-demo",
        "size_label": f"{millions}M",
        "type": "model",
        "description": f"A {millions}M-parameter demo model trained from scratch"
        " on synthetic dialogues.",
        "license": "apache-2.0",
    }
    for key, text in texts.items():
        writer.add(f"general.{key}", Kind.STRING, text)
    writer.add("general.quantization_version", Kind.UINT32, QUANTIZATION_VERSION)
    writer.add("general.file_type", Kind.UINT32, FILE_TYPE_Q8_0)
    writer.add("general.alignment", Kind.UINT32, ALIGNMENT)


def add_architecture(writer, config):
    heads = config["heads"]
    entries = [
        ("context_length", Kind.UINT32, config["ctx"]),
        ("embedding_length", Kind.UINT32, config["d"]),
        ("block_count", Kind.UINT32, config["layers"]),
        ("feed_forward_length", Kind.UINT32, config["ffn"]),
        ("attention.head_count", Kind.UINT32, heads),
        ("attention.head_count_kv", Kind.UINT32, heads),
        ("attention.layer_norm_rms_epsilon", Kind.FLOAT32, config["eps"]),
        ("rope.dimension_count", Kind.UINT32, config["d"] // heads),
        ("rope.freq_base", Kind.FLOAT32, config["theta"]),
        ("vocab_size", Kind.UINT32, config["vocab"]),
    ]
    for key, kind, value in entries:
        writer.add(f"llama.{key}", kind, value)


def token_type(token):
    if token in CONTROL_TOKENS:
        return CONTROL_TOKEN
    if token in SPECIAL_TOKENS:
        return USER_DEFINED_TOKEN
    return UNUSED_TOKEN if token.startswith("[unused") else NORMAL_TOKEN


def add_tokenizer(writer, trained):
    tokens = trained["tokens"]
    writer.add("tokenizer.ggml.model", Kind.STRING, "gpt2")
    writer.add("tokenizer.ggml.pre", Kind.STRING, "qwen2")
    writer.add_array("tokenizer.ggml.tokens", Kind.STRING, tokens)
    types = [token_type(token) for token in tokens]
    writer.add_array("tokenizer.ggml.token_type", Kind.INT32, types)
    merges = [f"{one} {two}" for one, two in trained["merges"]]
    writer.add_array("tokenizer.ggml.merges", Kind.STRING, merges)
    roles = {"bos": "<|endoftext|>", "eos": "<|im_end|>", "eot": "<|im_end|>"}
    for role, token in {**roles, "padding": "<|endoftext|>"}.items():
        writer.add(f"tokenizer.ggml.{role}_token_id", Kind.UINT32, tokens.index(token))
    writer.add("tokenizer.ggml.add_bos_token", Kind.BOOL, False)
    writer.add("tokenizer.ggml.add_eos_token", Kind.BOOL, False)
    writer.add("tokenizer.chat_template", Kind.STRING, TEMPLATE.read_text(encoding="utf-8"))


def interleaved(matrix, heads):
    """Rows in the order of the llama architecture, which rotates neighbours and not halves."""
    rows, columns = matrix.shape
    halves = matrix.reshape(heads, 2, rows // heads // 2, columns)
    return halves.transpose(0, 2, 1, 3).reshape(rows, columns)


def add_weights(writer, config, weights):
    writer.add_tensor("token_embd.weight", weights["emb"])
    writer.add_tensor("output_norm.weight", weights["norm"])
    for i in range(config["layers"]):
        q, k, v = np.split(weights[f"{i}.qkv"], 3)
        gate, up = np.split(weights[f"{i}.gu"], 2)
        tensors = {
            "attn_norm": weights[f"{i}.an"],
            "attn_q": interleaved(q, config["heads"]),
            "attn_k": interleaved(k, config["heads"]),
            "attn_v": v,
            "attn_output": weights[f"{i}.o"],
            "ffn_norm": weights[f"{i}.fn"],
            "ffn_gate": gate,
            "ffn_up": up,
            "ffn_down": weights[f"{i}.down"],
        }
        for name, tensor in tensors.items():
            writer.add_tensor(f"blk.{i}.{name}.weight", tensor)


def main():
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    model = torch.load(folder / "model.pt")
    weights = {name: weight.float().numpy() for name, weight in model["P"].items()}
    trained = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    writer = Writer()
    add_general(writer, sum(weight.size for weight in weights.values()))
    add_architecture(writer, model["cfg"])
    add_tokenizer(writer, trained)
    add_weights(writer, model["cfg"], weights)
    content = writer.to_bytes()
    target.write_bytes(content)
    print(target, len(content), "bytes")


if __name__ == "__main__":
    main()
