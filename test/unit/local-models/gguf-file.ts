/** Makes small GGUF files, right and wrong ones. */

export type GgufValue =
  | { readonly type: 4 | 5 | 2 | 10; readonly number: number }
  | { readonly type: 8; readonly text: string }
  | { readonly type: 9; readonly of: 8; readonly texts: readonly string[] }
  | { readonly type: 9; readonly of: 4; readonly numbers: readonly number[] };

export interface GgufForm {
  readonly version?: number;
  readonly entries?: { readonly [key: string]: GgufValue };
  readonly tensors?: readonly { readonly name: string; readonly dimensions: readonly number[] }[];
  /** Bytes behind the header. */
  readonly dataBytes?: number;
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function text(value: string): Buffer {
  return Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);
}

function valueBytes(value: GgufValue): Buffer {
  if (value.type === 8) return text(value.text);
  if (value.type === 9 && value.of === 8) {
    return Buffer.concat([u32(8), u64(value.texts.length), ...value.texts.map(text)]);
  }
  if (value.type === 9) {
    return Buffer.concat([u32(4), u64(value.numbers.length), ...value.numbers.map(u32)]);
  }
  if (value.type === 10) return u64(value.number);
  if (value.type !== 2) return u32(value.number);
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value.number);
  return bytes;
}

/** What an ordinary small model says of itself. */
export const ordinary: { readonly [key: string]: GgufValue } = {
  'general.architecture': { type: 8, text: 'qwen3' },
  'general.type': { type: 8, text: 'model' },
  'general.file_type': { type: 4, number: 15 },
  'tokenizer.ggml.tokens': { type: 9, of: 8, texts: ['a', 'bc', '<|im_end|>'] },
  'tokenizer.ggml.token_type': { type: 9, of: 4, numbers: [1, 1, 3] },
  'qwen3.context_length': { type: 4, number: 40_960 },
  'tokenizer.chat_template': { type: 8, text: '{{ messages }}'.repeat(100) },
};

export function ggufBytes(form: GgufForm = {}): Buffer {
  const { version = 3, entries = ordinary, dataBytes = 4096 } = form;
  const tensors = form.tensors ?? [
    { name: 'token_embd.weight', dimensions: [1024, 3] },
    { name: 'output_norm.weight', dimensions: [1024] },
  ];
  return Buffer.concat([
    Buffer.from('GGUF'),
    u32(version),
    u64(tensors.length),
    u64(Object.keys(entries).length),
    ...Object.entries(entries).map(([key, value]) =>
      Buffer.concat([text(key), u32(value.type), valueBytes(value)]),
    ),
    ...tensors.map(({ name, dimensions }, i) =>
      Buffer.concat([
        text(name),
        u32(dimensions.length),
        ...dimensions.map(u64),
        u32(0),
        u64(i * 32),
      ]),
    ),
    Buffer.alloc(dataBytes, 7),
  ]);
}
