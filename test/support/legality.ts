/** What a stream must look like so that every client of its dialect can read it (wire/*.md §5, §7). */
import assert from 'node:assert/strict';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { LegalChat } from './legal-chat.ts';
import { wireFrames, type Origin, type WireFrame } from './legal-frames.ts';
import { LegalMessages } from './legal-messages.ts';
import { LegalResponses } from './legal-responses.ts';
import { objectAt, textAt, type AnyDialect } from './reading.ts';

/**
 * A complete, properly ended stream that the gateway wrote itself.
 * @param usageChunk the client asked for one (chat only).
 */
export function assertLegalStream(dialect: AnyDialect, text: string, usageChunk: boolean): void {
  assertComplete(text, machine(dialect, 'own', usageChunk));
}

/** The same for a stream in an upstream's own words: what breaks no client is let through. */
export function assertLegalRelay(dialect: AnyDialect, text: string, usageChunk: boolean): void {
  assertComplete(text, machine(dialect, 'relayed', usageChunk));
}

/** A stream that failed: legal so far, then an error frame, and no mark of success anywhere. */
export function assertFailedStream(
  dialect: AnyDialect,
  text: string,
  origin: Origin = 'own',
): void {
  const checker = machine(dialect, origin, true);
  const frames = wireFrames(text);
  const last = frames.at(-1);
  assert.ok(last !== undefined, 'a failed stream has its error frame');
  for (const frame of frames.slice(0, -1)) checker.see(frame);
  checker.fail(last);
}

/** Whatever a stream is, it is one of the two: complete, or failed without a mark of success. */
export function assertAnyStream(
  { dialect, origin }: { readonly dialect: AnyDialect; readonly origin: Origin },
  request: unknown,
  text: string,
): void {
  const last = wireFrames(text).at(-1);
  const failed = {
    chat: last?.data.startsWith('{"error"'),
    messages: last?.event === 'error',
    responses: last?.event === 'response.failed',
  }[dialect];
  if (failed) assertFailedStream(dialect, text, origin);
  else assertComplete(text, machine(dialect, origin, wantsUsage(dialect, request)));
}

function wantsUsage(dialect: AnyDialect, request: unknown): boolean {
  const body = typeof request === 'string' ? tryParseObject(request) : request;
  if (dialect !== 'chat' || !isObject(body)) return true;
  return objectAt(body, 'stream_options')['include_usage'] === true;
}

/** What reads a stream of one dialect frame by frame, and fails at the first that is not legal. */
interface Machine {
  see(frame: WireFrame): void;
  /** The stream is complete. */
  end(): void;
  /** The stream failed: this is its last frame. */
  fail(frame: WireFrame): void;
}

function machine(dialect: AnyDialect, origin: Origin, usageChunk: boolean): Machine {
  switch (dialect) {
    case 'chat':
      return new LegalChat(origin, usageChunk);
    case 'messages':
      return new LegalMessages(origin);
    case 'responses':
      return new LegalResponses(origin);
    default:
      return dialect satisfies never;
  }
}

function assertComplete(text: string, checker: Machine): void {
  for (const frame of wireFrames(text)) checker.see(frame);
  checker.end();
}

/** An error body in the caller's dialect (reliability.md §0, H1). */
export function assertErrorBody(dialect: AnyDialect, body: JsonObject): JsonObject {
  const error = objectAt(body, 'error');
  assert.ok(textAt(error, 'message') !== '', `no message: ${JSON.stringify(body)}`);
  assert.ok(textAt(error, 'type') !== '', `no type: ${JSON.stringify(body)}`);
  if (dialect !== 'messages') {
    assert.deepEqual(Object.keys(error).sort(), ['code', 'message', 'param', 'type']);
  } else {
    assert.equal(body['type'], 'error');
    assert.ok(textAt(body, 'request_id') !== '', 'request_id is there');
    assert.equal(error['param'], undefined);
  }
  return error;
}
