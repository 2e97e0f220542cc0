/** Long bodies, made text in steps: `JSON.stringify` of 30 MB would hold up all other calls for 0.3 s (G11). */
import type { Json, JsonObject } from './conversation.ts';

/** So many characters become bytes at once. */
const pieceLength = 512 * 1024;

/** The bytes of `JSON.stringify(body)`; the event loop has its turn between members, and between items of lists. */
export async function jsonInSteps(body: JsonObject): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let text = '';
  for (const part of textsOf(body)) {
    text += part;
    if (text.length < pieceLength) continue;
    await nextTurn();
    pieces.push(Buffer.from(text));
    text = '';
    await nextTurn();
  }
  pieces.push(Buffer.from(text));
  return Buffer.concat(pieces);
}

/** Gives all others a turn. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function* textsOf(body: JsonObject): Generator<string> {
  let before = '{';
  for (const [key, value] of Object.entries(body)) {
    if (value === undefined) continue;
    yield `${before}${JSON.stringify(key)}:`;
    if (isArray(value)) yield* textsOfList(value);
    else yield JSON.stringify(value);
    before = ',';
  }
  yield before === '{' ? '{}' : '}';
}

function* textsOfList(items: readonly (Json | undefined)[]): Generator<string> {
  let before = '[';
  for (const item of items) {
    yield before + (JSON.stringify(item) ?? 'null');
    before = ',';
  }
  yield before === '[' ? '[]' : ']';
}

function isArray(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
