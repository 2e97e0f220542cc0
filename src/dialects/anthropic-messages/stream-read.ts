/**
 * Reads a messages stream into events (wire/messages.md §7; F40–F61). State is kept by block index:
 * an upstream may leave a block open when the next one starts.
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import type { Frame, StreamReader } from '../../core/dialect.ts';
import { GatewayError } from '../../core/errors.ts';
import type { FinishReason, GenerationEvent } from '../../core/generation.ts';
import { tryParseExactEvent } from '../../core/json-answer.ts';
import { isObject } from '../../core/json.ts';
import { readErrorValue } from './error-read.ts';
import { textOf } from './fields.ts';
import { readStop } from './stop-reason.ts';
import { StreamBlocks } from './stream-read-blocks.ts';
import { readUsage } from './usage.ts';

const none: readonly GenerationEvent[] = [];

/** Events that carry the answer; others are ignored, whatever their data is. */
const known: ReadonlySet<string> = new Set([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'error',
]);

export class MessagesStreamReader implements StreamReader {
  readonly #blocks = new StreamBlocks();
  /** Id of the message; undefined before `message_start`. */
  #message: string | undefined;
  /** All that was reported so far, in the upstream's own form. */
  #usage: JsonObject = {};
  /** Web searches that the answer shows; the report at its end knows which of them ran. */
  #searches = 0;
  /** The first reason that was told; it counts once the message stops (F60). */
  #stop: FinishReason | undefined;
  /** The finish, an error or the close was read: nothing after it counts (F53). */
  #over = false;

  get finishPending(): boolean {
    return this.#stop !== undefined && !this.#over;
  }

  /** @throws GatewayError `upstream_invalid` for data that is no JSON object (F45). */
  read(frame: Frame): readonly GenerationEvent[] {
    const { data, event: name } = frame;
    if (this.#over || data === undefined || data === '') return none;
    if (name !== undefined && !known.has(name)) return none;
    const event = tryParseExactEvent(data);
    if (event === undefined) return name === 'error' ? this.#fail(null) : this.#readOther(data);
    switch (name === 'error' ? name : typeOf(event, name)) {
      case 'content_block_delta':
        if (this.#message === undefined) {
          return [...this.#unannounced(), ...this.#blocks.delta(event)];
        }
        return this.#blocks.delta(event);
      case 'content_block_start':
        return [...this.#unannounced(), ...this.#blocks.start(event), ...this.#search(event)];
      case 'content_block_stop':
        return this.#blocks.stop(event['index']);
      case 'message_start':
        return this.#start(event['message']);
      case 'message_delta':
        return this.#messageDelta(event);
      case 'message_stop':
        return this.#finish();
      case 'error':
        return this.#fail(event);
      default:
        return none;
    }
  }

  end(): readonly GenerationEvent[] {
    return this.#over ? none : this.#finish();
  }

  /** The end mark of chat servers is no harm; other text fails the stream: nothing is skipped. */
  #readOther(data: string): readonly GenerationEvent[] {
    if (data.trim() === '[DONE]') return none;
    this.#over = true;
    throw new GatewayError('upstream_invalid', 'The upstream sent an event that is not JSON.');
  }

  /**
   * A second start of the same message is a repetition. A start of another one means that something
   * between here and the model tried again: two half answers, which nobody can put together.
   */
  #start(message: Json | undefined): readonly GenerationEvent[] {
    const start = isObject(message) ? message : {};
    const id = textOf(start['id']);
    if (this.#message !== undefined) {
      if (id === this.#message) return none;
      this.#over = true;
      const error = new GatewayError(
        'upstream_invalid',
        'The upstream began a second answer in the first.',
      );
      return [{ type: 'error', error }];
    }
    this.#message = id;
    const events: GenerationEvent[] = [{ type: 'start', id, model: textOf(start['model']) }];
    if (isObject(start['usage'])) {
      // The output count of the start is a placeholder, and so is that of searches; only message_delta knows them.
      const { output_tokens: _output, server_tool_use: _tools, ...usage } = start['usage'];
      this.#readUsage(usage, events);
    }
    return events;
  }

  /** A server that leaves out `message_start`: the answer begins all the same, once. */
  #unannounced(): readonly GenerationEvent[] {
    if (this.#message !== undefined) return none;
    this.#message = '';
    return [{ type: 'start', id: '', model: '' }];
  }

  #messageDelta(event: JsonObject): readonly GenerationEvent[] {
    const events: GenerationEvent[] = [];
    const { delta, usage } = event;
    if (isObject(usage)) {
      this.#readUsage(usage, events);
      if (this.#searches > 0 && ranNone(usage)) events.push(searched(0));
    }
    if (isObject(delta)) this.#stop ??= readStop(delta);
    return events;
  }

  /** A stream that is broken off reports none: then those that were begun count (§2C, LC and LP). */
  #search({ content_block: block }: JsonObject): readonly GenerationEvent[] {
    if (!isObject(block) || block['type'] !== 'server_tool_use') return none;
    if (block['name'] !== 'web_search') return none;
    this.#searches += 1;
    return [searched(this.#searches)];
  }

  /** Counts are cumulative: what is told replaces, what is null or missing stays (F2, F56). */
  #readUsage(reported: JsonObject, events: GenerationEvent[]): void {
    const merged: { [key: string]: Json | undefined } = { ...this.#usage };
    for (const [key, value] of Object.entries(reported)) if (value !== null) merged[key] = value;
    this.#usage = merged;
    const usage = readUsage(merged);
    if (usage !== undefined) events.push({ type: 'usage', usage });
  }

  /** The stream is complete, or closed: a stop reason makes it an answer (F52, F54). */
  #finish(): readonly GenerationEvent[] {
    this.#over = true;
    if (this.#stop !== undefined) {
      return [...this.#blocks.close(), { type: 'finish', reason: this.#stop }];
    }
    const error =
      this.#message === undefined
        ? new GatewayError('upstream_invalid', 'The upstream sent an empty stream.')
        : new GatewayError(
            'stream_interrupted',
            'The upstream ended the stream without saying why the answer ended.',
          );
    return [{ type: 'error', error }];
  }

  #fail(told: Json): readonly GenerationEvent[] {
    this.#over = true;
    return [{ type: 'error', error: readErrorValue(told) }];
  }
}

function searched(webSearches: number): GenerationEvent {
  return { type: 'usage', usage: { webSearches } };
}

/** Searches that failed are shown, and not charged. */
function ranNone({ server_tool_use: tools }: JsonObject): boolean {
  return isObject(tools) && tools['web_search_requests'] === 0;
}

/** The JSON repeats the name of the event; servers of other dialects only say `error`. */
function typeOf(event: JsonObject, name: string | undefined): Json | undefined {
  const type = event['type'] ?? name;
  return type === undefined && event['error'] !== undefined ? 'error' : type;
}
