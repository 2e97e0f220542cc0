import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { LocalModelFile } from './model-file.ts';

/**
 * Well-known small instruct models for `pull --list`. Sizes and licences come from the published model cards
 * and are not verified; the cards are authoritative.
 */

export interface KnownModel {
  readonly title: string;
  /** What `pull` takes. */
  readonly source: string;
  /** Of the file; about. */
  readonly size: string;
  readonly licence: string;
  readonly tools: 'yes' | 'good' | 'weak' | 'no';
  readonly remark: string;
}

/** From small to large. */
export const knownModels: readonly KnownModel[] = [
  {
    title: 'Gemma 3 270M it',
    source: 'hf:unsloth/gemma-3-270m-it-GGUF:Q8_0',
    size: '0.29 GB',
    licence: 'Gemma terms (restrictions of use)',
    tools: 'no',
    remark: 'the smallest real one; weak chat',
  },
  {
    title: 'Qwen3.5 0.8B',
    source: 'hf:unsloth/Qwen3.5-0.8B-GGUF:Q4_K_M',
    size: '0.5 GB',
    licence: 'Apache-2.0',
    tools: 'yes',
    remark: 'where it must be small',
  },
  {
    title: 'Qwen3 0.6B',
    source: 'hf:Qwen/Qwen3-0.6B-GGUF:Q8_0',
    size: '0.64 GB',
    licence: 'Apache-2.0',
    tools: 'yes',
    remark: 'thinks unless told not to',
  },
  {
    title: 'Gemma 3 1B it',
    source: 'hf:ggml-org/gemma-3-1b-it-GGUF:Q4_K_M',
    size: '0.81 GB',
    licence: 'Gemma terms (restrictions of use)',
    tools: 'no',
    remark: 'good prose for its size',
  },
  {
    title: 'Llama 3.2 1B Instruct',
    source: 'hf:bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M',
    size: '0.81 GB',
    licence: 'Llama 3.2 Community',
    tools: 'weak',
    remark: 'trained on long contexts',
  },
  {
    title: 'Qwen3 1.7B',
    source: 'hf:bartowski/Qwen_Qwen3-1.7B-GGUF:Q4_K_M',
    size: '1.3 GB',
    licence: 'Apache-2.0',
    tools: 'yes',
    remark: 'thinks unless told not to',
  },
  {
    title: 'SmolLM3 3B',
    source: 'hf:ggml-org/SmolLM3-3B-GGUF:Q4_K_M',
    size: '1.92 GB',
    licence: 'Apache-2.0',
    tools: 'yes',
    remark: 'its training data is open too',
  },
  {
    title: 'Qwen3 4B Instruct 2507',
    source: 'hf:unsloth/Qwen3-4B-Instruct-2507-GGUF:Q4_K_M',
    size: '2.5 GB',
    licence: 'Apache-2.0',
    tools: 'good',
    remark: 'does not think: the simplest useful one (16 GB of memory)',
  },
  {
    title: 'Qwen3.5 4B',
    source: 'hf:unsloth/Qwen3.5-4B-GGUF:Q4_K_M',
    size: '2.7 GB',
    licence: 'Apache-2.0',
    tools: 'good',
    remark: 'thinks unless told not to',
  },
  {
    title: 'Gemma 4 E2B it',
    source: 'hf:giladgd/gemma-4-E2B-it-GGUF:Q6_K',
    size: '3.9 GB',
    licence: 'see its card',
    tools: 'yes',
    remark: '5.1 billion parameters, 2.3 of them active',
  },
];

// The model that ships with the gateway.

const path = fileURLToPath(new URL('../../models/tiny/tiny.gguf', import.meta.url));

export const tinyModel: LocalModelFile & { readonly sha256: string } = {
  name: 'tiny',
  path,
  bytes: statSync(path, { throwIfNoEntry: false })?.size ?? 0,
  sha256: '26f834c00b24b5f8d06f4ad354a1c631c22e9eba9c50e576b3c645f09bfc7ed0',
  demo: true,
  settings: {},
};
