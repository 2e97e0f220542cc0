/** The thread that tokenises: tables of 90 MB and milliseconds of work that must hold up no call. */
import { parentPort } from 'node:worker_threads';
import type { Encoding } from '../core/provider.ts';

export interface TokenizerJob {
  readonly seq: number;
  readonly encoding: Encoding;
  readonly texts: readonly string[];
}

export interface TokenizerReply {
  readonly seq: number;
  readonly tokens: number;
}

type Count = (text: string) => number;

const loaded = new Map<Encoding, Promise<Count>>();

async function load(encoding: Encoding): Promise<Count> {
  const { countTokens } =
    encoding === 'o200k_base'
      ? await import('gpt-tokenizer/encoding/o200k_base')
      : await import('gpt-tokenizer/encoding/cl100k_base');
  // Text that looks like a special token is text: clients cannot send such tokens.
  return (text) => countTokens(text, { disallowedSpecial: new Set() });
}

parentPort?.on('message', async ({ seq, encoding, texts }: TokenizerJob) => {
  const count = loaded.get(encoding) ?? load(encoding);
  loaded.set(encoding, count);
  const counter = await count;
  let tokens = 0;
  for (const text of texts) for (const piece of pieces(text)) tokens += counter(piece);
  const reply: TokenizerReply = { seq, tokens };
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
  parentPort?.postMessage(reply);
});

// Cuts a text so that no piece has a long run without white space: merging one takes time with the
// square of its length (26 s for 200,000 letters). A cut adds a token at most.

const maxRun = 400;
const longRun = new RegExp(`\\S{${maxRun}}`, 'g');

/** The pieces in order; the text itself when nothing is to be cut. */
export function pieces(text: string): readonly string[] {
  const found: string[] = [];
  let start = 0;
  for (const match of text.matchAll(longRun)) {
    const end = match.index + maxRun;
    found.push(text.slice(start, end));
    start = end;
  }
  if (start < text.length) found.push(text.slice(start));
  return found;
}
