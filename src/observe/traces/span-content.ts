/**
 * Prompt and answer as attributes of a call's span, where the operator switched that on: JSON of the forms that
 * OpenTelemetry's conventions give (gen-ai-input-messages.json and its sisters). Under a limit, without bytes of
 * media and without what looks like a key.
 */
import type { Part, Turn } from '../../core/conversation.ts';
import type { Json, JsonObject } from '../../json/value.ts';
import type { FinishReason } from '../../core/generation.ts';
import { tryParseObject } from '../../json/parse.ts';
import { withoutKeys } from '../../core/secret.ts';
import { NoteList } from '../../core/notes.ts';
import type { Call } from '../../core/call.ts';
import {
  keyMargin,
  maxAttributeLength,
  maxPartLength,
  type PromptExcerpt,
} from '../../core/prompt-excerpt.ts';
import { LongBody } from '../../gateway/long-bodies/long-body.ts';
import { maskValues } from '../../gateway/mask-credentials.ts';
import type { AttemptReceipt } from '../../core/receipt.ts';

export interface SpanContent {
  /** All three may be absent. */
  readonly attributes: { readonly [name: string]: string | boolean | undefined };
  /** Characters. */
  readonly length: number;
}

/** @param attempt whose answer is the call's. Never throws. */
export function spanContent(call: Call, attempt: AttemptReceipt | undefined): SpanContent {
  const text = new Texts(call, attempt);
  const { system: instructed, turns, cut } = read(call);
  const system = text.parts(instructed);
  const asked = turns.flatMap((turn) => text.turn(turn));
  const input = text.last(asked);
  const instructions = text.first(system);
  const output = answerText(attempt, text);
  return {
    attributes: {
      'gen_ai.system_instructions': instructions,
      'gen_ai.input.messages': input,
      'gen_ai.output.messages': output,
      'gateway.content_cut': cut || text.cut ? true : undefined,
    },
    length: [instructions, input, output].reduce((sum, each) => sum + (each?.length ?? 0), 0),
  };
}

/** A relayed request may say what the canonical form cannot hold: nothing of it is told. */
const unreadable: PromptExcerpt = { system: [], turns: [], cut: true };

function read({ source, dialect }: Call): PromptExcerpt {
  if (source instanceof LongBody) return source.excerpt ?? unreadable;
  try {
    return { ...dialect.readRequest(source.value, new NoteList()), cut: false };
  } catch {
    return unreadable;
  }
}

function answerText(attempt: AttemptReceipt | undefined, text: Texts): string | undefined {
  const output = attempt?.said?.output;
  if (attempt === undefined || output === undefined || output.parts.length === 0) return undefined;
  if (output.cut) text.cut = true;
  const parts = text.fitting(text.parts(output.parts));
  const finish = attempt.said?.finish;
  const message = { role: 'assistant', parts, finish_reason: finishReason(finish) };
  return JSON.stringify([message]);
}

/** In the conventions' words. */
function finishReason(finish: FinishReason | undefined): string {
  if (finish === undefined) return 'error';
  switch (finish.kind) {
    case 'stop':
    case 'stop-sequence':
    case 'pause':
      return 'stop';
    case 'length':
    case 'context-window':
      return 'length';
    case 'tool-calls':
      return 'tool_call';
    case 'content-filter':
      return 'content_filter';
    case 'other':
      return finish.raw ?? 'stop';
    default:
      return finish.kind satisfies never;
  }
}

interface Message extends JsonObject {
  readonly role: string;
  readonly parts: readonly JsonObject[];
}

/** Writes the texts of one call, none of them with a secret, and remembers whether anything was left out. */
class Texts {
  cut = false;
  readonly #secrets: readonly string[];

  constructor(call: Call, attempt: AttemptReceipt | undefined) {
    const own = [call.header('authorization') ?? '', call.header('x-api-key') ?? ''];
    const flat = own.flatMap((value) => ['', value]);
    this.#secrets = [...flat, ...(attempt?.target.provider.generate.headers ?? [])];
  }

  parts(parts: readonly Part[]): readonly JsonObject[] {
    return parts.map((part) => this.#part(part)).filter((part) => part !== undefined);
  }

  /** What tools answered is a message of its own. */
  turn({ role, parts }: Turn): readonly Message[] {
    const results = this.parts(parts.filter(({ type }) => type === 'tool-result'));
    const others = this.parts(parts.filter(({ type }) => type !== 'tool-result'));
    return [
      ...(results.length === 0 ? [] : [{ role: 'tool', parts: results }]),
      ...(others.length === 0 ? [] : [{ role, parts: others }]),
    ];
  }

  first(parts: readonly JsonObject[]): string | undefined {
    return parts.length === 0 ? undefined : JSON.stringify(this.fitting(parts));
  }

  last(messages: readonly Message[]): string | undefined {
    let room = maxAttributeLength;
    const kept: Message[] = [];
    for (const { role, parts } of messages.toReversed()) {
      const own = this.fitting(parts.toReversed(), room).toReversed();
      if (own.length > 0) kept.unshift({ role, parts: own });
      if (own.length < parts.length) break;
      room -= JSON.stringify(own).length + role.length;
    }
    return kept.length === 0 ? undefined : JSON.stringify(kept);
  }

  /** The first parts that fit. */
  fitting(parts: readonly JsonObject[], most = maxAttributeLength): readonly JsonObject[] {
    let room = most;
    const over = parts.findIndex((part) => (room -= JSON.stringify(part).length + 1) < 0);
    if (over === -1) return parts;
    this.cut = true;
    return parts.slice(0, over);
  }

  #part(part: Part): JsonObject | undefined {
    switch (part.type) {
      case 'text':
      case 'refusal':
        return { type: 'text', content: this.#text(part.text) };
      case 'reasoning':
        return part.text === '' ? undefined : { type: 'reasoning', content: this.#text(part.text) };
      case 'tool-call':
        return {
          type: 'tool_call',
          id: this.#text(part.id),
          name: this.#text(part.name),
          arguments: this.#arguments(part.argumentsJson),
        };
      case 'tool-result':
        return {
          type: 'tool_call_response',
          id: this.#text(part.callId),
          response: this.#text(
            part.parts.map((each) => ('text' in each ? each.text : '')).join(''),
          ),
        };
      case 'media':
        return this.#media(part);
      case 'opaque':
        return { type: this.#text(String(part.value['type'] ?? 'opaque')) };
      default:
        return part satisfies never;
    }
  }

  /** Never the bytes; of an address neither user nor query, which may hold a signature. */
  #media({ kind, mediaType, source }: Extract<Part, { type: 'media' }>): JsonObject {
    const about = { modality: kind, ...(mediaType === '' ? {} : { mime_type: mediaType }) };
    if ('url' in source && URL.canParse(source.url)) {
      const { protocol, host, pathname } = new URL(source.url);
      if (protocol !== 'data:') {
        return { type: 'uri', ...about, uri: this.#text(`${protocol}//${host}${pathname}`) };
      }
    }
    if ('text' in source) return { type: 'text', content: this.#text(source.text) };
    return { type: 'blob', ...about, content: '' };
  }

  /** As the object that it is, where it is whole. */
  #arguments(json: string): Json {
    const text = this.#text(json);
    return tryParseObject(text) ?? text;
  }

  #text(text: string): string {
    const looked = withoutKeys(text.slice(0, maxPartLength + keyMargin));
    const shown = maskValues(looked, this.#secrets);
    if (text.length <= maxPartLength) return shown;
    this.cut = true;
    return `${shown.slice(0, maxPartLength - 1).replace(/[\ud800-\udbff]$/, '')}…`;
  }
}
