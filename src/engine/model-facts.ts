/** What a model's file says about itself. */
import type { LlamaModel, Token } from 'node-llama-cpp';
import { isObject } from './json.ts';

export interface ModelFacts {
  /** The context that the model was trained with, in tokens. */
  readonly trainContextSize: number;
  readonly parameters?: number;
  /** Of the file, in bytes. */
  readonly sizeBytes: number;
  /** e.g. `Q4_K_M`. */
  readonly quantization?: string;
}

const controlMarker = /^[<[].*[>\]]$|\|/u;

export function factsOf(model: LlamaModel, sizeBytes: number): ModelFacts {
  const parameters = parametersOf(model);
  // llama.cpp's own description: "llama 1B Q4_K - Medium", "qwen2 ?B Q8_0".
  const quantization = /\b(?:I?Q\d\w*|TQ\d\w*|BF16|F16|F32|MXFP4\w*)(?: - \w+)?/u.exec(
    model.typeDescription,
  )?.[0];
  return {
    trainContextSize: model.trainContextSize,
    sizeBytes,
    ...(parameters === 0 ? {} : { parameters }),
    ...(quantization === undefined ? {} : { quantization: shortName(quantization) }),
  };
}

/** "Q4_K - Medium" as "Q4_K_M", the way files are named. */
function shortName(quantization: string): string {
  const [type = '', size] = quantization.split(' - ');
  return size === undefined ? type : `${type}_${size[0]}`;
}

function parametersOf(model: LlamaModel): number {
  const tensors = model.fileInfo.fullTensorInfo ?? [];
  const sizes = tensors.map((tensor) =>
    tensor.dimensions.reduce((product: number, size) => product * Number(size), 1),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/**
 * Token texts that a caller must not be able to write: control tokens, and those user-defined ones
 * that the template itself uses (`<tool_call>`). Other user-defined tokens are ordinary text.
 */
export function markersOf(model: LlamaModel, template: string): readonly string[] {
  const markers: string[] = [];
  for (const [token, text] of specialTexts(model)) {
    const attributes = model.getTokenAttributes(token);
    const written = attributes.userDefined && controlMarker.test(text) && template.includes(text);
    if (attributes.control || written) markers.push(text);
  }
  return markers;
}

/** Control tokens that stand for one of these tags; the library would leave their text out. */
export function hiddenTags(model: LlamaModel, tags: readonly string[]): ReadonlyMap<Token, string> {
  const hidden = new Map<Token, string>();
  for (const [token, text] of specialTexts(model)) {
    if (tags.includes(text) && model.getTokenAttributes(token).control) hidden.set(token, text);
  }
  return hidden;
}

function* specialTexts(model: LlamaModel): Generator<[Token, string]> {
  const texts = model.fileInfo.metadata.tokenizer?.ggml.tokens ?? [];
  for (const token of model.iterateAllTokens()) {
    const text = texts[token];
    if (text !== undefined && text !== '') yield [token, text];
  }
}

/** The file's general metadata, where models recommend their sampling. */
export function generalMetadata(model: LlamaModel): unknown {
  const { metadata } = model.fileInfo;
  return isObject(metadata) ? metadata['general'] : undefined;
}
