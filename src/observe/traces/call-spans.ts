/**
 * A call that is over as the spans of a trace: one of the call, one of each attempt, in the words of
 * OpenTelemetry's conventions for generative AI. Made after the answer, of what the call left, so that a
 * call without traces pays nothing and one with them is not held up. Prompt and answer are in them only where
 * the operator switched that on.
 */
import { dollarsNumber } from '../../core/money.ts';
import { totalInputTokens, type Usage, type FinishReason } from '../../core/generation.ts';
import {
  type PromptExcerpt,
  type RequestParameters,
  keyMargin,
  maxAttributeLength,
  maxPartLength,
} from '../../core/description.ts';
import type { Target } from '../../core/provider.ts';
import type {
  AttemptReceipt,
  Call,
  CallTrace,
  Receipt,
  SpanAttributes,
  SpanData,
  SpanEvent,
} from '../../core/call.ts';
import { nameOf } from '../../gateway/targets/health.ts';
import type { CallRow } from '../../store/calls.ts';
import type { Part, Turn } from '../../core/conversation.ts';
import type { Json, JsonObject } from '../../json/value.ts';
import { tryParseObject } from '../../json/parse.ts';
import { withoutKeys } from '../../core/secret.ts';
import { NoteList } from '../../core/notes.ts';
import { LongBody } from '../../gateway/long-bodies/body-thread.ts';
import { maskValues, secretHeaders } from '../../gateway/mask-credentials.ts';

// Prompt and answer as attributes of a call's span, where the operator switched that on: JSON of the forms that
// OpenTelemetry's conventions give (gen-ai-input-messages.json and its sisters). Under a limit, without bytes of
// media and without what looks like a key.

interface SpanContent {
  /** All three may be absent. */
  readonly attributes: { readonly [name: string]: string | boolean | undefined };
  /** Characters. */
  readonly length: number;
}

/** @param attempt whose answer is the call's. Never throws. */
function spanContent(call: Call, attempt: AttemptReceipt | undefined): SpanContent {
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

/** A relayed request may say what the canonical form cannot hold: its content is not exported. */
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
  const message = { role: 'assistant', parts, finish_reason: semanticFinish(finish) };
  return JSON.stringify([message]);
}

/** In the conventions' words. */
function semanticFinish(finish: FinishReason | undefined): string {
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

/** Writes the texts of one call, none of them with a secret, and remembers whether anything was omitted. */
class Texts {
  cut = false;
  readonly #secrets: readonly string[];

  constructor(call: Call, attempt: AttemptReceipt | undefined) {
    const own = [call.header('authorization') ?? '', call.header('x-api-key') ?? ''];
    const flat = own.flatMap((value) => ['', value]);
    const sent = attempt === undefined ? [] : secretHeaders(attempt.target.provider.generate);
    this.#secrets = [...flat, ...sent];
  }

  parts(parts: readonly Part[]): readonly JsonObject[] {
    return parts.map((part) => this.#part(part)).filter((part) => part !== undefined);
  }

  /** Tool results are a separate message. */
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
      case 'media': {
        // Never the bytes; of an address neither user nor query, which may hold a signature.
        const { kind, mediaType, source } = part;
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
      case 'opaque':
        return { type: this.#text(String(part.value['type'] ?? 'opaque')) };
      default:
        return part satisfies never;
    }
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

/** Texts that clients and upstreams choose are cut here. */
const maxText = 256;
const operation = 'chat';

type Attributes = { [name: string]: SpanAttributes[string] | undefined };

/** The span of the call first. Nothing when it is not sampled. */
export function settledSpans(call: Call, receipt: Receipt, row: CallRow): readonly SpanData[] {
  const { trace } = call;
  if (trace?.sampled !== true) return [];
  const at = (monotonic: number): number => call.startedWall + monotonic - call.startedAt;
  const own = receipt.attempts.map((attempt) => attemptSpan(call, attempt, at));
  return [callSpan(call, receipt, { row, trace, at }), ...own];
}

/** A call that was refused before its path began. */
export function refusedSpan(row: CallRow, trace: CallTrace): SpanData {
  return {
    ...ends(trace),
    name: spanName(row.model),
    startedAt: row.startedAt,
    endedAt: row.startedAt + row.totalMs,
    ...failureOf(row),
    attributes: present({
      ...common(row.model, row.stream),
      ...ofRow(row),
      'gen_ai.provider.name': 'model-gateway',
    }),
    events: [],
  };
}

function callSpan(
  call: Call,
  receipt: Receipt,
  {
    row,
    trace,
    at,
  }: {
    readonly row: CallRow;
    readonly trace: CallTrace;
    readonly at: (monotonic: number) => number;
  },
): SpanData {
  const { target, firstEventMs, mode } = receipt;
  const last = leading(receipt);
  const content = trace.content ? spanContent(call, last) : undefined;
  return {
    ...ends(trace),
    name: spanName(call.head.model),
    startedAt: call.startedWall,
    endedAt: call.startedWall + receipt.totalMs,
    ...failureOf(row),
    attributes: present({
      ...common(call.head.model, call.head.stream),
      ...asked(call.dialect.describe(call.source).parameters()),
      ...ofRow(row),
      'gen_ai.provider.name': target === undefined ? 'model-gateway' : providerName(target),
      ...answered(last),
      ...usageOf(receipt.charged),
      'gen_ai.response.time_to_first_chunk': call.head.stream ? seconds(firstEventMs) : undefined,
      'gateway.target': target === undefined ? undefined : cut(nameOf(target)),
      'gateway.mode': mode,
      'gateway.usage_source': receipt.usageSource,
      'gateway.cost_usd': row.cost === undefined ? undefined : dollarsNumber(row.cost.total),
      'gateway.notes': receipt.notes.length === 0 ? undefined : receipt.notes.length,
      ...content?.attributes,
    }),
    ...(content === undefined ? {} : { contentLength: content.length }),
    events: eventsOf(call, receipt, at),
  };
}

function attemptSpan(
  call: Call,
  attempt: AttemptReceipt,
  at: (monotonic: number) => number,
): SpanData {
  const { target, error, outcome, startedAt, ms } = attempt;
  const { trace } = call;
  if (trace === undefined) throw new TypeError('The call is not traced.');
  const failed = outcome === 'failed' ? { failure: error ?? 'failed' } : {};
  return {
    name: spanName(target.model),
    kind: 'client',
    trace,
    spanId: attempt.spanId ?? trace.newSpanId(),
    parentId: trace.spanId,
    startedAt: at(startedAt),
    endedAt: at(startedAt + ms),
    ...failed,
    attributes: present({
      ...common(target.model, call.head.stream),
      ...asked(call.dialect.describe(call.source).parameters()),
      'gen_ai.provider.name': providerName(target),
      ...addressOf(target),
      ...answered(attempt),
      ...usageOf(attempt.reported ?? {}),
      'gen_ai.response.time_to_first_chunk': call.head.stream
        ? seconds(attempt.firstEventMs)
        : undefined,
      'http.response.status_code': attempt.status,
      'error.type': outcome === 'failed' ? (error ?? '_OTHER') : undefined,
      'gateway.outcome': outcome,
      'gateway.target': cut(nameOf(target)),
      'gateway.credential': target.credential,
      'gateway.maybe_billed': attempt.maybeBilled ? true : undefined,
    }),
    events:
      attempt.firstEventMs === undefined
        ? []
        : [
            {
              name: 'gateway.first_token',
              at: at(startedAt + attempt.firstEventMs),
              attributes: {},
            },
          ],
  };
}

/** The try that the call ended with: of a hedge it may be the one that began first. */
function leading({ attempts, target }: Receipt): AttemptReceipt | undefined {
  return attempts.findLast((attempt) => attempt.target === target) ?? attempts.at(-1);
}

/** In the order of time: the first token, each try after the first one, and the cut of an answer. */
function eventsOf(
  call: Call,
  receipt: Receipt,
  at: (monotonic: number) => number,
): readonly SpanEvent[] {
  const { attempts, firstEventMs } = receipt;
  const events: SpanEvent[] = [];
  attempts.forEach((attempt, i) => {
    const before = attempts[i - 1];
    if (before !== undefined) events.push(nextTry(before, attempt, at));
  });
  if (firstEventMs !== undefined) {
    const attributes = present({ 'gateway.target': targetName(receipt.target) });
    const when = at(call.startedAt + firstEventMs);
    events.push({ name: 'gateway.first_token', at: when, attributes });
  }
  const why = cutReason(receipt);
  if (why !== undefined) {
    const when = at(call.startedAt + receipt.totalMs);
    events.push({ name: 'gateway.cut', at: when, attributes: { 'gateway.cut.reason': why } });
  }
  return events.toSorted((a, b) => a.at - b.at);
}

function nextTry(
  before: AttemptReceipt,
  attempt: AttemptReceipt,
  at: (monotonic: number) => number,
): SpanEvent {
  const hedged = attempt.startedAt < before.startedAt + before.ms;
  const again = nameOf(before.target) === nameOf(attempt.target);
  const other = again ? 'gateway.retry' : 'gateway.fallback';
  return {
    name: hedged ? 'gateway.hedge' : other,
    at: at(attempt.startedAt),
    attributes: present({
      'gateway.from': targetName(before.target),
      'gateway.to': targetName(attempt.target),
      'error.type': hedged ? undefined : before.error,
    }),
  };
}

/** Why an answer that had begun did not come to the end that its model would have given it. */
function cutReason(receipt: Receipt): string | undefined {
  const { outcome, error, firstEventMs } = receipt;
  if (outcome === 'canceled') return 'client_left';
  if (outcome === 'ok') return leading(receipt)?.cut;
  return firstEventMs === undefined ? undefined : error;
}

function ends(trace: CallTrace): Pick<SpanData, 'kind' | 'trace' | 'spanId' | 'parentId'> {
  const { spanId, parentId } = trace;
  return { kind: 'server', trace, spanId, ...(parentId === undefined ? {} : { parentId }) };
}

/** An error of the client is no failure of the server (conventions for HTTP). */
function failureOf({ outcome, status, error }: CallRow): { readonly failure?: string } {
  if (outcome !== 'failed' || (status !== undefined && status >= 400 && status < 500)) return {};
  return { failure: error ?? 'failed' };
}

function spanName(model: string): string {
  return model === '' ? operation : `${operation} ${cut(model)}`;
}

function common(model: string, stream: boolean): Attributes {
  return {
    'gen_ai.operation.name': operation,
    'gen_ai.request.model': model === '' ? undefined : cut(model),
    'gen_ai.request.stream': stream ? true : undefined,
  };
}

function ofRow(row: CallRow): Attributes {
  return {
    'http.response.status_code': row.status,
    'error.type': row.outcome === 'failed' ? (row.error ?? '_OTHER') : undefined,
    'gateway.call_id': row.id,
    'gateway.key_id': row.keyId,
    'gateway.team': row.team,
    'gateway.tags': row.tags.length === 0 ? undefined : row.tags,
    'gateway.endpoint': row.endpoint,
    'gateway.outcome': row.outcome,
    'gateway.attempts': row.attempts,
  };
}

/** The settings of the request. */
function asked(request: RequestParameters): Attributes {
  const { choices, stop } = request;
  return {
    'gen_ai.request.max_tokens': request.maxTokens,
    'gen_ai.request.temperature': request.temperature,
    'gen_ai.request.top_p': request.topP,
    'gen_ai.request.top_k': request.topK,
    'gen_ai.request.frequency_penalty': request.frequencyPenalty,
    'gen_ai.request.presence_penalty': request.presencePenalty,
    'gen_ai.request.seed': request.seed,
    'gen_ai.request.choice.count': choices === 1 ? undefined : choices,
    'gen_ai.request.stop_sequences': stop?.map(cut),
    'gen_ai.output.type': request.json ? 'json' : undefined,
  };
}

function answered(attempt: AttemptReceipt | undefined): Attributes {
  if (attempt === undefined) return {};
  const start = attempt.said?.start;
  const reason = finishReason(attempt);
  return {
    'gen_ai.response.id': said(start?.id),
    'gen_ai.response.model': said(start?.model),
    'gen_ai.response.finish_reasons': reason === undefined ? undefined : [cut(reason)],
  };
}

/** The upstream's own word; the gateway's where it ended the answer. */
function finishReason({ said, cut: why }: AttemptReceipt): string | undefined {
  const finish = said?.finish;
  if (finish !== undefined) return finish.raw ?? finish.kind;
  return why === 'limit' ? 'length' : why;
}

function said(text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : cut(text);
}

function usageOf(usage: Usage): Attributes {
  return {
    'gen_ai.usage.input_tokens': totalInputTokens(usage),
    'gen_ai.usage.output_tokens': usage.outputTokens,
    'gen_ai.usage.cache_read.input_tokens': usage.cacheReadTokens,
    'gen_ai.usage.cache_creation.input_tokens': usage.cacheWriteTokens,
    'gen_ai.usage.reasoning.output_tokens': usage.reasoningTokens,
  };
}

/** For an engine on a socket, its path. */
function addressOf({ provider }: Target): Attributes {
  const { origin, socketPath } = provider.generate;
  if (socketPath !== undefined) return { 'server.address': socketPath };
  const { hostname, port, protocol } = new URL(origin);
  const usual = protocol === 'https:' ? 443 : 80;
  return { 'server.address': hostname, 'server.port': port === '' ? usual : Number(port) };
}

function providerName({ provider }: Target): string {
  return provider.telemetryName ?? provider.id;
}

function targetName(target: Target | undefined): string | undefined {
  return target === undefined ? undefined : cut(nameOf(target));
}

function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

function cut(text: string): string {
  return text.length <= maxText ? text : `${text.slice(0, maxText - 1)}…`;
}

function present(attributes: Attributes): SpanAttributes {
  const kept: { [name: string]: SpanAttributes[string] } = {};
  for (const name in attributes) {
    const value = attributes[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}
