/**
 * Reads an answer into events, block by block. Documents and streams share this code. The state is the open blocks by
 * index, and the data that must wait for the end.
 */
import type { Citation, DocumentPlace, Part } from '../../../core/conversation.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { GenerationEvent } from '../../../core/generation.ts';
import { isObject, type Json, type JsonObject, textOf } from '../../../json/value.ts';
import {
  answerObject,
  answerObjects,
  answerText,
  cutArguments,
  isCutBy,
  wrongType,
} from '../../shared/answers.ts';
import { dialectId } from '../fields.ts';
import { malformed, readStop, readUsage } from './usage.ts';

type Kind = 'text' | 'reasoning' | 'call' | 'other';

interface OpenBlock {
  readonly kind: Kind;
  /** Index of its part. */
  readonly index: number;
  /** A piece of the arguments was read. */
  hasArguments: boolean;
}

export class AnswerReader {
  readonly #open = new Map<number, OpenBlock>();
  /** Encrypted reasoning arrives in pieces, each encoded separately. */
  readonly #redacted = new Map<number, Buffer[]>();
  /** Part indexes of calls that ended without arguments. The next event shows whether they have none or were cut. */
  readonly #bare: number[] = [];
  #started = false;
  #next = 0;
  #calls = 0;
  /** A text, a call or a part of the provider's own tools was read. */
  #hasContent = false;
  #stop: { readonly reason: string; readonly more: JsonObject | undefined } | undefined;

  get started(): boolean {
    return this.#started;
  }

  /** The stop reason was read. Usage may follow. */
  get finished(): boolean {
    return this.#stop !== undefined;
  }

  start(events: GenerationEvent[]): void {
    if (this.#started) return;
    this.#started = true;
    // An answer has neither an id nor a model.
    events.push({ type: 'start', id: '', model: '' });
  }

  /** The beginning of a block. If it has no kind, the first delta shows it. */
  blockStart(block: number, start: JsonObject, events: GenerationEvent[]): void {
    this.#endBare(events);
    const call = answerObject(start['toolUse'], 'a toolUse');
    if (call !== undefined) return this.#call(block, call, events);
    if (Object.keys(start).length === 0) return;
    this.#closeOthers(block, events);
    this.#begin(block, 'other', otherPart(start), events);
  }

  /** @throws GatewayError `upstream_invalid` for members of wrong types. */
  delta(block: number, delta: JsonObject, events: GenerationEvent[]): void {
    this.#endBare(events);
    const text = answerText(delta['text'], 'a text');
    if (text !== '') this.#text(block, 'text', text, events);
    const call = answerObject(delta['toolUse'], 'a toolUse');
    if (call !== undefined) this.#arguments(block, call, events);
    const reasoning = answerObject(delta['reasoningContent'], 'reasoning');
    if (reasoning !== undefined) this.#reasoning(block, reasoning, events);
    const citation = answerObject(delta['citation'], 'a citation');
    if (citation !== undefined) this.#cite(block, citation, events);
  }

  /** A piece of a text that is open. Undefined if more than that must be done. */
  continueText(block: number, delta: string): readonly GenerationEvent[] | undefined {
    const open = this.#open.get(block);
    if (open?.kind !== 'text' || this.#bare.length > 0) return undefined;
    return [{ type: 'part-delta', index: open.index, field: 'text', delta }];
  }

  blockStop(block: number, events: GenerationEvent[]): void {
    const open = this.#open.get(block);
    if (open !== undefined) {
      this.#open.delete(block);
      if (open.kind === 'call' && !open.hasArguments) this.#bare.push(open.index);
      else events.push({ type: 'part-end', index: open.index });
    }
    const pieces = this.#redacted.get(block);
    if (pieces === undefined) return;
    this.#redacted.delete(block);
    const encrypted = Buffer.concat(pieces).toString('base64');
    const index = this.#next++;
    events.push(
      { type: 'part-start', index, part: { type: 'reasoning', text: '', encrypted } },
      { type: 'part-end', index },
    );
  }

  /**
   * A whole block of a document. `stop` was read before the last one.
   * @param isLast a call in the last block of an answer that was cut lacks a part of its arguments
   */
  block(block: number, content: JsonObject, events: GenerationEvent[], isLast = false): void {
    const { text, toolUse, reasoningContent, citationsContent } = content;
    this.#endBare(events);
    if (toolUse !== undefined) {
      const call = answerObject(toolUse, 'a toolUse') ?? {};
      this.#call(block, call, events);
      const input = inputOf(call, isLast && this.#isCut);
      if (this.#open.get(block)?.kind === 'call') this.#arguments(block, { input }, events);
    } else if (reasoningContent !== undefined) {
      const reasoning = answerObject(reasoningContent, 'reasoning') ?? {};
      const told = answerObject(reasoning['reasoningText'], 'reasoning');
      this.#reasoning(block, { ...reasoning, ...told }, events);
    } else if (citationsContent !== undefined) {
      const cited = answerObject(citationsContent, 'citations') ?? {};
      for (const piece of answerObjects(cited['content'], 'cited content')) {
        this.delta(block, { text: piece['text'] }, events);
      }
      for (const citation of answerObjects(cited['citations'], 'citations')) {
        this.#cite(block, citation, events);
      }
    } else if (text === undefined) {
      this.blockStart(block, content, events);
    } else this.delta(block, { text }, events);
    this.blockStop(block, events);
  }

  get #isCut(): boolean {
    const stop = this.#stop;
    return stop !== undefined && isCutBy(readStop(stop.reason, this.#calls > 0, stop.more));
  }

  /** @param message a `messageStop`, or the document */
  stop(message: JsonObject): void {
    const reason = answerText(message['stopReason'], 'a stopReason');
    const more = message['additionalModelResponseFields'];
    this.#stop ??= { reason, more: isObject(more) ? more : undefined };
  }

  /** @param report a `metadata`, or the document */
  usage(report: JsonObject, events: GenerationEvent[]): void {
    const usage = readUsage(report);
    if (usage !== undefined) events.push({ type: 'usage', usage });
  }

  /** The last events: the ends of open parts and the finish, or an error if the answer has no content. */
  end(): readonly GenerationEvent[] {
    const stop = this.#stop;
    if (stop === undefined) return [{ type: 'error', error: cutError(this.#started) }];
    const events: GenerationEvent[] = [];
    for (const block of [...this.#open.keys(), ...this.#redacted.keys()]) {
      this.blockStop(block, events);
    }
    if (malformed.has(stop.reason) && !this.#hasContent) {
      return [...events, { type: 'error', error: emptyError(stop.reason) }];
    }
    const reason = readStop(stop.reason, this.#calls > 0, stop.more);
    this.#endBare(events, isCutBy(reason));
    return [...events, { type: 'finish', reason }];
  }

  /** @param isCut the answer ended before the arguments arrived */
  #endBare(events: GenerationEvent[], isCut = false): void {
    for (const index of this.#bare.splice(0)) {
      if (!isCut) events.push({ type: 'part-delta', index, field: 'arguments', delta: '{}' });
      events.push({ type: 'part-end', index });
    }
  }

  #text(
    block: number,
    kind: 'text' | 'reasoning',
    delta: string,
    events: GenerationEvent[],
  ): number {
    let open = this.#open.get(block);
    if (open?.kind !== kind) {
      this.blockStop(block, events);
      this.#closeOthers(block, events);
      open = this.#begin(block, kind, { type: kind, text: '' }, events);
    }
    if (kind === 'text') this.#hasContent = true;
    const { index } = open;
    if (delta !== '') events.push({ type: 'part-delta', index, field: 'text', delta });
    return index;
  }

  #reasoning(block: number, reasoning: JsonObject, events: GenerationEvent[]): void {
    const text = answerText(reasoning['text'], 'a reasoning text');
    if (text !== '') this.#text(block, 'reasoning', text, events);
    const signature = answerText(reasoning['signature'], 'a signature');
    if (signature !== '') {
      const index = this.#text(block, 'reasoning', '', events);
      events.push({ type: 'part-delta', index, field: 'signature', delta: signature });
    }
    const redacted = answerText(reasoning['redactedContent'], 'redacted reasoning');
    if (redacted === '') return;
    const pieces = this.#redacted.get(block) ?? [];
    this.#redacted.set(block, [...pieces, Buffer.from(redacted, 'base64')]);
  }

  /** A call of a client's tool. Calls that the provider runs itself are not passed on. */
  #call(block: number, call: JsonObject, events: GenerationEvent[]): void {
    this.#closeOthers(block, events);
    if (textOf(call['type']) === 'server_tool_use') {
      this.#begin(block, 'other', otherPart({ toolUse: call }), events);
      return;
    }
    const name = answerText(call['name'], 'a name');
    if (name === '') {
      throw new GatewayError('upstream_invalid', 'The upstream sent a call without a name.');
    }
    const id = answerText(call['toolUseId'], 'an id');
    this.#calls += 1;
    this.#hasContent = true;
    this.#begin(block, 'call', { type: 'tool-call', id, name, argumentsJson: '' }, events);
  }

  #arguments(block: number, { input }: JsonObject, events: GenerationEvent[]): void {
    const open = this.#open.get(block);
    const delta = answerText(input, 'an input');
    if (open?.kind === 'other') return;
    if (open?.kind !== 'call') throw wrongType('arguments of a call');
    if (delta === '') return;
    open.hasArguments = true;
    events.push({ type: 'part-delta', index: open.index, field: 'arguments', delta });
  }

  #cite(block: number, citation: JsonObject, events: GenerationEvent[]): void {
    const index = this.#text(block, 'text', '', events);
    events.push({ type: 'part-citation', index, citation: readCitation(citation) });
  }

  #begin(block: number, kind: Kind, part: Part, events: GenerationEvent[]): OpenBlock {
    const open = { kind, index: this.#next++, hasArguments: false };
    this.#open.set(block, open);
    if (kind === 'other') this.#hasContent = true;
    events.push({ type: 'part-start', index: open.index, part });
    return open;
  }

  /** Ends texts without an end event. Calls may interleave. */
  #closeOthers(block: number, events: GenerationEvent[]): void {
    for (const other of this.#redacted.keys()) if (other !== block) this.blockStop(other, events);
    for (const [other, { kind }] of this.#open) {
      if (other !== block && kind !== 'call') this.blockStop(other, events);
    }
  }
}

/** The arguments of a call in a document; `''` = none. */
function inputOf({ input = {} }: JsonObject, isCut: boolean): string {
  if (isCut && isObject(input)) return cutArguments(input);
  const json = JSON.stringify(input ?? {});
  return json === '{}' ? '' : json;
}

function otherPart(value: JsonObject): Part {
  return { type: 'opaque', dialect: dialectId, value };
}

/** The source of a citation: on the web, in a document of the request, or in a search result. */
function readCitation(value: JsonObject): Citation {
  const location = isObject(value['location']) ? value['location'] : {};
  const web = isObject(location['web']) ? location['web'] : undefined;
  const url = textOf(web?.['url']) || addressIn(value['source']);
  const title = textOf(value['title']);
  const content = Array.isArray(value['sourceContent']) ? value['sourceContent'] : [];
  const citedText = content.map((each) => (isObject(each) ? textOf(each['text']) : '')).join('');
  return {
    ...(url === '' ? {} : { url }),
    ...(title === '' ? {} : { title }),
    ...(citedText === '' ? {} : { citedText }),
    ...placeIn(location),
    native: { dialect: dialectId, value },
  };
}

const placeUnits = [
  ['documentChar', 'char'],
  ['documentPage', 'page'],
  ['documentChunk', 'block'],
] as const;

/** The place in a document of the request. Nothing for a location of another kind, or one without all of its numbers. */
function placeIn(location: JsonObject): { readonly place?: DocumentPlace } {
  for (const [name, unit] of placeUnits) {
    const found = location[name];
    if (!isObject(found)) continue;
    const { documentIndex: document, start, end } = found;
    if (isPosition(document) && isPosition(start) && isPosition(end)) {
      return { place: { document, unit, start, end } };
    }
  }
  return {};
}

function isPosition(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function addressIn(source: JsonObject[string]): string {
  const text = textOf(source);
  return /^https?:\/\//.test(text) ? text : '';
}

function cutError(started: boolean): GatewayError {
  return started
    ? new GatewayError('stream_interrupted', 'The upstream closed the stream before its end.')
    : new GatewayError('upstream_invalid', 'The upstream sent an empty stream.');
}

function emptyError(reason: string): GatewayError {
  return new GatewayError(
    'upstream_invalid',
    `The upstream ended the answer without any content (${reason}).`,
    { repeat: 'once' },
  );
}
