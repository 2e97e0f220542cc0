/**
 * Reads the response objects of an answer into events. A document is one object; a stream has many, each with the new
 * parts. The state is the open part, and the data that must wait for the end.
 */
import type { Part } from '../../../core/conversation.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { FinishReason, GenerationEvent, Usage } from '../../../core/generation.ts';
import { isObject, type Json, type JsonObject, textOf } from '../../../json/value.ts';
import { derivedCallId } from '../../shared/tool-names.ts';
import { answerObject, answerObjects, answerText, isPresent } from '../../shared/answers.ts';
import { dialectId, signatureFormat, signedExtras } from '../fields.ts';
import { citationsOf, searchesOf, type AnswerText } from './grounding.ts';
import { PartialArgs } from './partial-args.ts';
import { besideData } from './shape.ts';
import { readUsage } from './usage.ts';

interface OpenPart {
  readonly kind: 'text' | 'reasoning';
  readonly index: number;
}

interface OpenCall {
  readonly index: number;
  readonly args: PartialArgs;
}

interface SeenFinish {
  /** The finish reason as the upstream wrote it. */
  readonly reason: string;
  /** The upstream's explanation; `''` = none. */
  readonly message: string;
}

export class AnswerReader {
  #started = false;
  #model = '';
  #id: Json | undefined;
  #next = 0;
  #open: OpenPart | undefined;
  /** All texts, the open one included. Their sources arrive at the end. */
  readonly #texts: AnswerText[] = [];
  /** Events after a text whose sources may still arrive: usually calls. The text stays open until then. */
  #held: GenerationEvent[] | undefined;
  /** The signature of the part before it. */
  #signature = '';
  #call: OpenCall | undefined;
  #calls = 0;
  /** A text, a call or a part of the provider's own tools was read. */
  #hasContent = false;
  #finish: SeenFinish | undefined;
  /** The token with which a further request continues the answer. The last one counts. */
  #continuation = '';
  #blocked: SeenFinish | undefined;
  #grounding: JsonObject | undefined;
  /** The counts so far, as the upstream names them. */
  #counts: JsonObject = {};
  /** The finish event was emitted. Only usage may follow. */
  #ended = false;
  readonly #isDocument: boolean;
  readonly #continues: boolean;

  /** @param continues whether a further request can continue a paused answer */
  constructor({ isDocument = false, continues = false } = {}) {
    this.#isDocument = isDocument;
    this.#continues = continues;
  }

  /** The finish reason was read. Usage and sources may follow. */
  get finished(): boolean {
    return this.#finish !== undefined || this.#blocked !== undefined;
  }

  get started(): boolean {
    return this.#started;
  }

  /** @throws GatewayError `upstream_invalid` for members of wrong types. */
  read(response: JsonObject, events: GenerationEvent[]): void {
    this.#start(response, events);
    const candidate = firstCandidate(response);
    if (candidate !== undefined && !this.#ended) this.#readCandidate(candidate, events);
    const feedback = answerObject(response['promptFeedback'], 'a promptFeedback');
    const reason = textOf(feedback?.['blockReason']);
    if (reason !== '') {
      this.#blocked = { reason, message: textOf(feedback?.['blockReasonMessage']) };
    }
    const usage = this.usage(response['usageMetadata']);
    if (usage !== undefined) events.push({ type: 'usage', usage });
    // No part is open. A client that waits for the first content learns at once that none comes.
    if (this.finished && this.#next === 0) events.push(...this.end());
  }

  /**
   * Counts are cumulative: a reported count replaces the earlier one, a missing count does not. Undefined without counts.
   */
  usage(reported: Json | undefined): Usage | undefined {
    if (!isObject(reported)) return undefined;
    const earlier = this.#counts;
    const lacks = Object.keys(earlier).some((name) => !isPresent(reported[name]));
    this.#counts = lacks ? { ...earlier, ...present(reported) } : reported;
    return readUsage(this.#counts);
  }

  /** A piece of the open text. Undefined if more than that must be done. */
  continueText(delta: string): GenerationEvent | undefined {
    const open = this.#open;
    const spoken = this.#texts.at(-1);
    if (open?.kind !== 'text' || open.index !== spoken?.index || this.#held !== undefined) {
      return undefined;
    }
    if (this.#call !== undefined || this.#signature !== '' || this.finished) return undefined;
    spoken.text += delta;
    return { type: 'part-delta', index: open.index, field: 'text', delta };
  }

  /** The last events: the ends of open parts and the finish, or an error if the answer has no content. */
  end(): readonly GenerationEvent[] {
    if (this.#ended) return [];
    const events: GenerationEvent[] = [];
    const seen = this.#finish ?? this.#blocked;
    if (seen === undefined) return [{ type: 'error', error: cutError(this.#started) }];
    this.#ended = true;
    const reason = this.#reason(seen);
    const isCut = reason?.kind !== 'stop' && reason?.kind !== 'tool-calls';
    this.#closeCall(this.#held ?? events, isCut);
    if (this.#grounding !== undefined) {
      if (this.#hasContent) this.#cite(this.#grounding, events);
      const webSearches = searchesOf(this.#grounding, this.#model);
      if (webSearches > 0) events.push({ type: 'usage', usage: { webSearches } });
    }
    this.#release(events);
    this.#close(events);
    if (reason === undefined) return [...events, { type: 'error', error: emptyError(seen) }];
    return [...events, { type: 'finish', reason }];
  }

  #start(response: JsonObject, events: GenerationEvent[]): void {
    if (this.#started) return;
    this.#started = true;
    this.#model = textOf(response['modelVersion']);
    this.#id = response['responseId'];
    events.push({ type: 'start', id: textOf(this.#id), model: this.#model });
  }

  #readCandidate(candidate: JsonObject, events: GenerationEvent[]): void {
    // Each chunk repeats all of it, so the last one counts.
    const grounding = candidate['groundingMetadata'];
    if (isObject(grounding)) this.#grounding = grounding;
    const content = answerObject(candidate['content'], 'a content');
    for (const part of answerObjects(content?.['parts'], 'parts')) this.#readPart(part, events);
    this.#continuation =
      answerText(candidate['continuationToken'], 'a continuationToken') || this.#continuation;
    const reason = answerText(candidate['finishReason'], 'a finishReason');
    if (reason === '') return;
    // A `STOP` after another reason does not replace that reason. An unset reason replaces none.
    const known = this.#finish?.reason;
    if (
      known === undefined ||
      known === unspecified ||
      (known === 'STOP' && reason !== unspecified)
    ) {
      this.#finish = { reason, message: textOf(candidate['finishMessage']) };
    }
  }

  #readPart(part: JsonObject, events: GenerationEvent[]): void {
    const signature = answerText(part['thoughtSignature'], 'a thoughtSignature');
    const call = answerObject(part['functionCall'], 'a functionCall');
    if (call !== undefined) {
      if (this.#open?.kind === 'text') this.#held ??= [];
      this.#readCall(call, signature, this.#held ?? events);
      return;
    }
    const text = answerText(part['text'], 'a text');
    if (text !== '') this.#addText(text, part['thought'] === true ? 'reasoning' : 'text', events);
    else this.#readOther(part, events);
    if (signature === '') return;
    if (this.#signature !== '') this.#close(this.#held ?? events);
    this.#signature = signature;
  }

  /** Ends the text that waited for its sources, and emits the events after it. */
  #release(events: GenerationEvent[]): void {
    events.push(...(this.#held ?? []));
    this.#held = undefined;
  }

  #addText(delta: string, kind: OpenPart['kind'], events: GenerationEvent[]): void {
    this.#release(events);
    this.#closeCall(events);
    if (this.#open?.kind !== kind || this.#signature !== '') {
      this.#close(events);
      this.#open = { kind, index: this.#begin({ type: kind, text: '' }, events) };
      if (kind === 'text') this.#texts.push({ index: this.#open.index, text: '' });
    }
    const spoken = kind === 'text' ? this.#texts.at(-1) : undefined;
    if (spoken !== undefined) {
      this.#hasContent = true;
      spoken.text += delta;
    }
    events.push({ type: 'part-delta', index: this.#open.index, field: 'text', delta });
  }

  /** Code that the provider ran, media that it made. An empty text is ignored. */
  #readOther(part: JsonObject, events: GenerationEvent[]): void {
    const data = Object.keys(part).filter((name) => !besideData.has(name) && isPresent(part[name]));
    if (data.length === 0) return;
    this.#release(events);
    this.#closeCall(events);
    this.#close(events);
    this.#hasContent = true;
    const index = this.#begin(otherPart(part), events);
    events.push({ type: 'part-end', index });
  }

  #readCall(call: JsonObject, signature: string, events: GenerationEvent[]): void {
    const name = answerText(call['name'], 'a name');
    const continues = call['willContinue'] === true;
    if (name === '') {
      if (this.#call === undefined) {
        if (Object.keys(call).length === 0) return;
        throw new GatewayError('upstream_invalid', 'The upstream sent a call without a name.');
      }
      this.#call.args.add(call['partialArgs']);
      if (!continues) this.#closeCall(events);
      return;
    }
    this.#closeCall(events);
    this.#close(events);
    this.#hasContent = true;
    const given = answerObject(call['args'], 'args');
    const isPiece = given === undefined && (continues || isPresent(call['partialArgs']));
    const index = this.#begin(
      {
        type: 'tool-call',
        id: answerText(call['id'], 'an id') || this.#callId(),
        name,
        argumentsJson: isPiece ? '' : JSON.stringify(given ?? {}),
        ...(signature === '' ? {} : { extras: signedExtras(signature) }),
      },
      events,
    );
    this.#calls += 1;
    if (!isPiece) {
      events.push({ type: 'part-end', index });
      return;
    }
    const args = new PartialArgs();
    args.add(call['partialArgs']);
    this.#call = { index, args };
    if (!continues) this.#closeCall(events);
  }

  /** The id is the same for the same answer. Without an id of the answer, it is valid in its conversation only. */
  #callId(): string {
    const known = typeof this.#id === 'string' && this.#id !== '';
    return known
      ? derivedCallId({ id: this.#id, created: undefined }, this.#next)
      : `call_${this.#next}`;
  }

  #begin(part: Part, events: GenerationEvent[]): number {
    const index = this.#next;
    this.#next += 1;
    events.push({ type: 'part-start', index, part });
    return index;
  }

  /** @param isCut the answer ended within the call, so its arguments lack their closing brace */
  #closeCall(events: GenerationEvent[], isCut = false): void {
    const call = this.#call;
    if (call === undefined) return;
    this.#call = undefined;
    const { index, args } = call;
    const delta = isCut ? args.json.slice(0, -1) : args.json;
    events.push(
      { type: 'part-delta', index, field: 'arguments', delta },
      { type: 'part-end', index },
    );
  }

  /** Ends the open text or reasoning. Its signature follows as reasoning without text. */
  #close(events: GenerationEvent[]): void {
    const open = this.#open;
    if (open !== undefined) events.push({ type: 'part-end', index: open.index });
    this.#open = undefined;
    const signature = this.#signature;
    if (signature === '') return;
    this.#signature = '';
    const extras = { 'openai-chat': { format: signatureFormat } };
    const index = this.#begin({ type: 'reasoning', text: '', signature, extras }, events);
    events.push({ type: 'part-end', index });
  }

  /** Adds the sources. If no text is open, an empty text carries them. */
  #cite(grounding: JsonObject, events: GenerationEvent[]): void {
    const texts = this.#citable();
    const isSilent = texts.length === 0;
    if (isSilent) {
      this.#close(events);
      texts.push({ index: this.#next, text: '' });
    }
    const cited = citationsOf(grounding, texts);
    if (cited.length === 0) return;
    if (isSilent) {
      this.#open = { kind: 'text', index: this.#begin({ type: 'text', text: '' }, events) };
    }
    for (const { index, citation } of cited) {
      events.push({ type: 'part-citation', index, citation });
    }
  }

  /** Texts that can still get sources. In a stream these are the texts that have not ended. */
  #citable(): AnswerText[] {
    if (this.#isDocument) return [...this.#texts];
    const isOpen = this.#held !== undefined || this.#open?.kind === 'text';
    return isOpen ? this.#texts.slice(-1) : [];
  }

  /** The finish reason. Undefined for an end without any content. */
  #reason({ reason, message }: SeenFinish): FinishReason | undefined {
    if (this.#finish === undefined || filters.has(reason)) {
      const explanation = message === '' ? null : message;
      return {
        kind: 'content-filter',
        raw: reason,
        details: { type: 'refusal', category: null, explanation },
      };
    }
    if (reason === 'STOP') return { kind: this.#calls > 0 ? 'tool-calls' : 'stop', raw: reason };
    // A cut call ends the answer. A further request would return the rest of its arguments without its name.
    if (this.#call !== undefined) return { kind: 'length', raw: reason };
    const resume = this.#continuation;
    if (reason === 'CONTINUATION' && this.#continues && resume !== '')
      return { kind: 'pause', raw: reason, resume };
    if (reason === 'MAX_TOKENS' || reason === 'CONTINUATION')
      return { kind: 'length', raw: reason };
    return this.#hasContent ? { kind: 'other', raw: reason } : undefined;
  }
}

/** The value of a reason that was not set, which some servers write out in each piece. */
const unspecified = 'FINISH_REASON_UNSPECIFIED';

/** Reasons of filters. `MODEL_ARMOR` was observed and is not in the published types. */
const filters: ReadonlySet<string> = new Set([
  'SAFETY',
  'RECITATION',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'LANGUAGE',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
  'MODEL_ARMOR',
]);

function present(members: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isPresent(value)));
}

/** The candidate with index 0 or without an index. @throws GatewayError `upstream_invalid` */
function firstCandidate(response: JsonObject): JsonObject | undefined {
  const candidates = answerObjects(response['candidates'], 'candidates');
  return candidates.find(({ index }) => typeof index !== 'number' || index === 0);
}

function otherPart(part: JsonObject): Part {
  const media = part['inlineData'];
  const type = isObject(media) ? textOf(media['mimeType']) : '';
  const data = isObject(media) ? textOf(media['data']) : '';
  if (data === '') return { type: 'opaque', dialect: dialectId, value: part };
  const kind = type.startsWith('audio/') ? 'audio' : 'image';
  return { type: 'media', kind, mediaType: type, source: { base64: data } };
}

function cutError(started: boolean): GatewayError {
  return started
    ? new GatewayError('stream_interrupted', 'The upstream closed the stream before its end.')
    : new GatewayError('upstream_invalid', 'The upstream sent an empty stream.');
}

/** An answer without content happens sometimes, mostly after malformed calls. It is retried. */
function emptyError({ reason }: SeenFinish): GatewayError {
  const word = /^[A-Z_]{1,60}$/.test(reason) ? reason : 'an unknown reason';
  return new GatewayError(
    'upstream_invalid',
    `The upstream ended the answer without any content (${word}).`,
    { repeat: 'once' },
  );
}
