/**
 * A call that is over as the spans of a trace: one of the call, one of each attempt, in the words of
 * OpenTelemetry's conventions for generative AI. Made behind the answer, of what the call left, so that a
 * call without traces pays nothing and one with them is not held up. Prompt and answer are in them only where
 * the operator switched that on (span-content.ts).
 */
import { dollarsNumber } from '../../core/money.ts';
import { totalInputTokens, type Usage } from '../../core/generation.ts';
import type { RequestParameters } from '../../core/description.ts';
import type { Target } from '../../core/provider.ts';
import type { CallTrace, SpanAttributes, SpanData, SpanEvent } from '../../core/trace.ts';
import type { Call } from '../../core/call.ts';
import { nameOf } from '../../gateway/health.ts';
import type { AttemptReceipt, Receipt } from '../../core/receipt.ts';
import type { CallRow } from '../../store/calls.ts';
import { spanContent } from './span-content.ts';

/** What clients and upstreams choose is cut here. */
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

/** In the order of time: the first token, each try behind the first one, and the cut of an answer. */
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

/** What the client did wrong is not a failure of the server (conventions for HTTP). */
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

/** Of an engine on a socket the socket. */
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
