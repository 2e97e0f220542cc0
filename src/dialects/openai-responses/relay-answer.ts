/**
 * Same-dialect answers: the bytes travel as they are, apart from the members of the response object that are the gateway's
 * own. Requests: relay-request.ts.
 */
import type { AnswerContext, AnswerRelay, Frame } from '../../core/dialect.ts';
import { spliceAnswer, type WholeDocument } from '../../core/client-body.ts';
import type { GatewayError } from '../../core/errors.ts';
import type { GenerationEvent, Usage } from '../../core/generation.ts';
import { tryParseObject } from '../../json/parse.ts';
import { isObject, type JsonObject } from '../../json/value.ts';
import { withBlankLine, withModel } from '../shared/answers.ts';
import { isArray, textOf } from './fields.ts';
import { eventFrame, Lifecycle } from './lifecycle.ts';
import { withEstimate } from './stream-write.ts';
import { writeUsage } from './usage.ts';

const terminal: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
]);
const numbered = /"sequence_number"\s*:\s*(\d{1,15})/;

export class ResponsesAnswerRelay implements AnswerRelay {
  readonly #context: AnswerContext;
  readonly #life: Lifecycle;
  /** The client was told an id before the upstream began. */
  readonly #announced: boolean;
  #ended = false;
  /** The upstream's latest response object, as it was sent on. */
  #response: JsonObject | undefined;
  readonly #items: (JsonObject | undefined)[] = [];
  /** The item that is open, for an empty delta of it. */
  #open:
    { readonly output: number; readonly item: JsonObject; delta: string | undefined } | undefined;

  constructor(context: AnswerContext) {
    this.#context = context;
    this.#life = new Lifecycle(context, context.opening);
    this.#announced = this.#life.began;
  }

  get ended(): boolean {
    return this.#ended;
  }

  plainFrame(frame: Frame): Buffer | undefined {
    if (this.#ended) return undefined;
    this.#seeNumber(frame.data ?? '');
    if (this.#open !== undefined) this.#open.delta ??= frame.data;
    return withBlankLine(frame.bytes);
  }

  frame(frame: Frame, _events: readonly GenerationEvent[], gap?: Usage): Buffer | undefined {
    const { data } = frame;
    if (this.#ended) return undefined;
    if (data === undefined || data === '') {
      return frame.event === undefined && data === undefined ? frame.bytes : undefined;
    }
    // The terminator of chat completions is none here.
    if (data.startsWith('[DONE]')) return undefined;
    this.#seeNumber(data);
    const event = tryParseObject(data);
    const type = textOf(event?.['type']) || (frame.event ?? '');
    // Some of the older clients fail on it.
    if (type === 'keepalive') return undefined;
    if (event !== undefined) this.#seeItem(type, event, data);
    const response = event?.['response'];
    if (event === undefined || !isObject(response)) return withBlankLine(frame.bytes);
    return this.#lifecycle(type, event, { response, frame, gap });
  }

  document(answer: WholeDocument, gap?: Usage): Buffer {
    const { bytes, body } = answer;
    const own = Object.entries(this.#own(body, gap)).filter(([key, value]) => body[key] !== value);
    const [first] = own;
    if (first === undefined) return bytes;
    const renamed = own.length === 1 && first[0] === 'model';
    const members = Object.fromEntries(own.map(([key, value]) => [key, JSON.stringify(value)]));
    return (
      (renamed ? withModel(bytes, body['model'], this.#context.model) : undefined) ??
      spliceAnswer(answer, members) ??
      Buffer.from(JSON.stringify({ ...body, ...Object.fromEntries(own) }))
    );
  }

  ending(gap?: Usage): string {
    return this.#ended ? '' : this.#end('completed', {}, gap);
  }

  cutShort(usage: Usage): string {
    const reason = { incomplete_details: { reason: 'max_output_tokens' } };
    return this.#end('incomplete', reason, usage);
  }

  fail(error: GatewayError, requestId: string): string {
    return this.#life.fail(error, requestId, this.#output());
  }

  keepAlive(): string {
    const { sequence } = this.#life;
    const text = this.#silentEvent();
    // The upstream's numbers go on behind it.
    this.#life.sequence = sequence;
    return text;
  }

  #silentEvent(): string {
    if (!this.#life.began) return this.#life.keepAlive();
    const event = tryParseObject(this.#open?.delta ?? '');
    if (event === undefined) return this.#life.progress(this.#output());
    const { obfuscation: _padding, ...rest } = event;
    const sequence_number = Math.max(0, this.#life.sequence - 1);
    return eventFrame(textOf(event['type']), { ...rest, sequence_number, delta: '' });
  }

  #end(status: 'completed' | 'incomplete', more: JsonObject, gap: Usage | undefined): string {
    this.#ended = true;
    const usage = writeUsage(withEstimate(gap, this.#context));
    const known = this.#response ?? this.#life.response([], { status });
    const response = { ...known, status, ...more, output: this.#output(), usage };
    return this.#life.event(`response.${status}`, { response });
  }

  #lifecycle(
    type: string,
    event: JsonObject,
    {
      response,
      frame,
      gap,
    }: { readonly response: JsonObject; readonly frame: Frame; readonly gap: Usage | undefined },
  ): Buffer | undefined {
    const first = type === 'response.created';
    if (first && this.#announced) return undefined;
    if (first) this.#life.announced(textOf(response['id']));
    if (terminal.has(type)) this.#ended = true;
    const own = this.#own(response, this.#ended ? gap : undefined);
    this.#response = { ...response, ...own };
    const same = Object.entries(own).every(([key, value]) => response[key] === value);
    if (same) return withBlankLine(frame.bytes);
    return Buffer.from(eventFrame(type, { ...event, response: this.#response }));
  }

  /** The members of a response object that are not the upstream's. */
  #own(response: JsonObject, gap: Usage | undefined): JsonObject {
    const { state } = this.#context;
    const unreported = this.#ended && !isObject(response['usage']);
    return {
      model: this.#context.model,
      ...(response['store'] === undefined ? {} : { store: state?.store === true }),
      ...(response['previous_response_id'] === undefined
        ? {}
        : { previous_response_id: state?.previousResponseId ?? null }),
      ...(this.#announced ? { id: this.#life.id } : {}),
      ...(gap === undefined && !unreported
        ? {}
        : { usage: writeUsage(withEstimate(gap, this.#context)) }),
    };
  }

  #seeNumber(data: string): void {
    const found = numbered.exec(data.slice(0, 200)) ?? numbered.exec(data.slice(-200));
    if (found !== null) this.#life.sequence = Number(found[1]) + 1;
  }

  #seeItem(type: string, event: JsonObject, data: string): void {
    const { output_index: output, item } = event;
    if (typeof output !== 'number') return;
    if (type === 'response.output_item.added' && isObject(item)) {
      this.#open = { output, item, delta: undefined };
    } else if (type === 'response.output_item.done' && isObject(item)) {
      this.#items[output] = item;
      if (this.#open?.output === output) this.#open = undefined;
    } else if (type.endsWith('.delta') && this.#open?.output === output) {
      this.#open.delta ??= data;
    } else if (type.endsWith('.done') && this.#open?.output === output) {
      this.#open.delta = undefined;
    }
  }

  #output(): readonly JsonObject[] {
    const seen = this.#items.filter((item) => item !== undefined);
    const told = this.#response?.['output'];
    return seen.length === 0 && isArray(told) ? told.filter(isObject) : seen;
  }
}
