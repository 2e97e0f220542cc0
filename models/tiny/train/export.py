"""Write GGUF v3 (own small writer): llama architecture, gpt2-type BPE, Q8_0 or F16."""
import sys, json, struct, numpy as np, torch
import bpe
ck = torch.load(sys.argv[1]); out = sys.argv[2]; qt = sys.argv[3] if len(sys.argv) > 3 else "q8_0"
C, P = ck["cfg"], {k: v.float().numpy() for k, v in ck["P"].items()}
D, H, L, FF, V = C["d"], C["heads"], C["layers"], C["ffn"], C["vocab"]; HD = D // H
tk = json.load(open("tokenizer.json"))
def q8_0(a):
    b = a.reshape(-1, 32).astype(np.float32); d = np.abs(b).max(1) / 127; dh = d.astype(np.float16)
    q = np.where(d[:, None] > 0, b / np.where(d > 0, d, 1)[:, None], 0); q = np.clip(np.rint(q), -127, 127).astype(np.int8)
    r = np.zeros((len(b), 34), np.uint8); r[:, :2] = dh.view(np.uint8).reshape(-1, 2); r[:, 2:] = q.view(np.uint8); return r.tobytes()
T = {}
def add(name, a):
    a = np.ascontiguousarray(a)
    if a.ndim == 1: T[name] = (a.shape, 0, a.astype("<f4").tobytes())
    elif qt == "f16": T[name] = (a.shape, 1, a.astype("<f2").tobytes())
    elif qt == "f32": T[name] = (a.shape, 0, a.astype("<f4").tobytes())
    else: T[name] = (a.shape, 8, q8_0(a))
def perm(w):  # rotate-half rows -> interleaved rows, as the llama architecture wants
    return w.reshape(H, 2, HD // 2, D).transpose(0, 2, 1, 3).reshape(D, D)
add("token_embd.weight", P["emb"]); add("output_norm.weight", P["norm"])
for i in range(L):
    q, k, v = np.split(P[f"{i}.qkv"], 3); g, u = np.split(P[f"{i}.gu"], 2); n = f"blk.{i}."
    add(n + "attn_norm.weight", P[f"{i}.an"]); add(n + "attn_q.weight", perm(q)); add(n + "attn_k.weight", perm(k)); add(n + "attn_v.weight", v)
    add(n + "attn_output.weight", P[f"{i}.o"]); add(n + "ffn_norm.weight", P[f"{i}.fn"]); add(n + "ffn_gate.weight", g); add(n + "ffn_up.weight", u); add(n + "ffn_down.weight", P[f"{i}.down"])
TEMPLATE = open("chat_template.jinja").read()
U32, I32, F32, BOOL, STR, ARR = 4, 5, 6, 7, 8, 9
def s(x): b = x.encode(); return struct.pack("<Q", len(b)) + b
def val(t, v):
    if t == STR: return s(v)
    if t == BOOL: return struct.pack("<?", v)
    if t == F32: return struct.pack("<f", v)
    return struct.pack("<I" if t == U32 else "<i", v)
KV = []
def kv(k, t, v, et=None):
    KV.append(s(k) + struct.pack("<I", t) + (val(t, v) if t != ARR else struct.pack("<IQ", et, len(v)) + b"".join(val(et, x) for x in v)))
sp = set(bpe.SPECIAL); ctrl = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}
ids = {t: i for i, t in enumerate(tk["tokens"])}
kv("general.architecture", STR, "llama"); kv("general.name", STR, "Tiny demo model"); kv("general.basename", STR, "tiny-demo"); kv("general.size_label", STR, "1.5M"); kv("general.type", STR, "model")
kv("general.description", STR, "A 1.5M-parameter demo model trained from scratch on synthetic dialogues."); kv("general.license", STR, "apache-2.0")
kv("general.quantization_version", U32, 2); kv("general.file_type", U32, {"f32": 0, "f16": 1, "q8_0": 7}[qt]); kv("general.alignment", U32, 32)
kv("llama.context_length", U32, C["ctx"]); kv("llama.embedding_length", U32, D); kv("llama.block_count", U32, L); kv("llama.feed_forward_length", U32, FF)
kv("llama.attention.head_count", U32, H); kv("llama.attention.head_count_kv", U32, H); kv("llama.attention.layer_norm_rms_epsilon", F32, C["eps"])
kv("llama.rope.dimension_count", U32, HD); kv("llama.rope.freq_base", F32, C["theta"]); kv("llama.vocab_size", U32, V)
kv("tokenizer.ggml.model", STR, "gpt2"); kv("tokenizer.ggml.pre", STR, "qwen2")
kv("tokenizer.ggml.tokens", ARR, tk["tokens"], STR)
kv("tokenizer.ggml.token_type", ARR, [3 if t in ctrl else 4 if t in sp else 5 if t.startswith("[unused") else 1 for t in tk["tokens"]], I32)
kv("tokenizer.ggml.merges", ARR, [a + " " + b for a, b in tk["merges"]], STR)
kv("tokenizer.ggml.bos_token_id", U32, ids["<|endoftext|>"]); kv("tokenizer.ggml.eos_token_id", U32, ids["<|im_end|>"]); kv("tokenizer.ggml.eot_token_id", U32, ids["<|im_end|>"]); kv("tokenizer.ggml.padding_token_id", U32, ids["<|endoftext|>"])
kv("tokenizer.ggml.add_bos_token", BOOL, False); kv("tokenizer.ggml.add_eos_token", BOOL, False); kv("tokenizer.chat_template", STR, TEMPLATE)
head = struct.pack("<IIQQ", 0x46554747, 3, len(T), len(KV)) + b"".join(KV); off = 0; data = b""
for n, (sh, t, b) in T.items():
    head += s(n) + struct.pack("<I", len(sh)) + b"".join(struct.pack("<Q", x) for x in reversed(sh)) + struct.pack("<IQ", t, off)
    p = -len(b) % 32; data += b + b"\0" * p; off += len(b) + p
head += b"\0" * (-len(head) % 32)
open(out, "wb").write(head + data); print(out, len(head) + len(data), "bytes", len(T), "tensors")
