/**
 * The lifecycle events of a stream: sequence numbers, the response object in these events, and the two events of a
 * failure. A stream may begin before any upstream has answered.
 */
import type { AnswerContext, StreamOpening } from '../../../core/dialect.ts';
import type { GatewayError } from '../../../core/errors.ts';
import type { Usage } from '../../../core/generation.ts';
import { isObject, type Json, type JsonObject, textOf } from '../../../json/value.ts';
import { streamFailure } from '../errors.ts';
import { isPresent } from '../fields.ts';
import { dialectId, idPrefixes } from '../items.ts';
import { writeUsage } from './usage.ts';

type LifecycleContext = Pick<
  AnswerContext,
  'model' | 'createdSeconds' | 'newId' | 'conversation' | 'state'
>;

/**
 * An event with a piece of a text. Between two such events only the number and the piece change, so the rest is written
 * once. The bytes are equal to those of `Lifecycle.event`.
 */
export interface DeltaFrame {
  /** The bytes before the number, between it and the text, and after the text. */
  readonly head: string;
  readonly middle: string;
  readonly after: string;
}

/**
 * @param location the members before the text
 * @param more the members after it
 */
export function deltaFrame(type: string, location: JsonObject, more: JsonObject = {}): DeltaFrame {
  const inside = (members: JsonObject): string => JSON.stringify(members).slice(1, -1);
  const after = inside(more);
  return {
    head: `event: ${type}\ndata: {${inside({ type })},"sequence_number":`,
    middle: `,${inside(location)},"delta":`,
    after: `${after === '' ? '' : `,${after}`}}\n\n`,
  };
}

/** The end of a response. */
export interface Ending {
  readonly status: 'completed' | 'incomplete' | 'failed';
  readonly error?: JsonObject;
  readonly reason?: string;
  readonly usage?: JsonObject;
  readonly serviceTier?: string;
  /** Unix time; only of a completed response. */
  readonly completedSeconds?: number;
}

/** The contents of a failed response. */
interface Failed {
  /** The completed items. */
  readonly output?: readonly JsonObject[];
  /** Undefined: the upstream did not report it. */
  readonly usage?: Usage | undefined;
}

export class Lifecycle implements StreamOpening {
  /** Of the next event. */
  sequence = 0;
  readonly #context: LifecycleContext;
  #id: string;
  #began = false;

  /** @param announced the events that the client got before an upstream answered. This stream continues them. */
  constructor(context: LifecycleContext, announced?: StreamOpening) {
    this.#context = context;
    if (announced instanceof Lifecycle) {
      this.#id = announced.#id;
      this.#began = announced.#began;
      this.sequence = announced.sequence;
    } else this.#id = context.newId(idPrefixes.response);
  }

  get id(): string {
    return this.#id;
  }

  /** `response.created` was written. */
  get began(): boolean {
    return this.#began;
  }

  /**
   * Whether the response has the gateway's own id: a stored response, since a provider may use an id twice, or one
   * whose id the client already got.
   */
  get named(): boolean {
    return this.#began || this.#context.state?.store === true;
  }

  /** Uses the upstream's id, unless the response has the gateway's own. */
  name(id: string): void {
    if (!this.named && id !== '') this.#id = id;
  }

  /** The upstream's own `response.created` was passed on. */
  announced(id: string): void {
    this.name(id);
    this.#began = true;
  }

  event(type: string, members: JsonObject): string {
    const sequence = this.sequence++;
    return eventFrame(type, { type, sequence_number: sequence, ...members });
  }

  /** An event with the next piece of a text. */
  delta({ head, middle, after }: DeltaFrame, text: string): string {
    return `${head}${this.sequence++}${middle}${JSON.stringify(text)}${after}`;
  }

  /** The first two events, once. */
  begin(): string {
    if (this.#began) return '';
    this.#began = true;
    return this.event('response.created', { response: this.begun([]) }) + this.progress([]);
  }

  /** A `response.in_progress` event, as a keep-alive. */
  progress(output: readonly JsonObject[]): string {
    return this.event('response.in_progress', { response: this.begun(output) });
  }

  keepAlive(): string {
    return this.#began ? this.progress([]) : this.begin();
  }

  /** The two events of a failure. */
  fail(error: GatewayError, requestId: string, { output = [], usage }: Failed = {}): string {
    const failure = streamFailure(error, requestId);
    const begin = this.begin();
    const response = this.response(output, {
      status: 'failed',
      error: failure.response,
      ...(usage === undefined ? {} : { usage: writeUsage(usage) }),
    });
    return (
      begin +
      this.event('error', { error: failure.event }) +
      this.event('response.failed', { response })
    );
  }

  /** The object of `response.created` and `response.in_progress`, without tools and instructions, which may be long. */
  begun(output: readonly JsonObject[]): JsonObject {
    return this.#object(output, { tools: [], instructions: null }, { status: 'in_progress' });
  }

  /** The object of a document or of the last event. */
  response(output: readonly JsonObject[], ending: Ending): JsonObject {
    return this.#object(output, {}, ending);
  }

  #object(
    output: readonly JsonObject[],
    instead: JsonObject,
    ending: Omit<Ending, 'status'> & { readonly status: string },
  ): JsonObject {
    const { createdSeconds, model, conversation, state } = this.#context;
    const { status, error, reason, usage, serviceTier, completedSeconds } = ending;
    return {
      id: this.#id,
      object: 'response',
      created_at: createdSeconds,
      status,
      background: false,
      completed_at: completedSeconds ?? null,
      error: error ?? null,
      incomplete_details: reason === undefined ? null : { reason },
      ...echoed(conversation?.extras[dialectId] ?? {}),
      ...instead,
      model,
      output,
      previous_response_id: state?.previousResponseId ?? null,
      // A failed response is not stored.
      store: state?.store === true && status !== 'failed',
      service_tier: serviceTier ?? 'default',
      usage: usage ?? null,
    };
  }
}

/** The members of the request that the response repeats, with the defaults of the API. */
function echoed(body: JsonObject): JsonObject {
  const { reasoning: asked, text } = body;
  const reasoning = isObject(asked) ? asked : {};
  const echo = (key: string, otherwise: Json): Json =>
    isPresent(body[key]) ? body[key] : otherwise;
  const format = isObject(text) && isPresent(text['format']) ? text['format'] : { type: 'text' };
  const verbosity = isObject(text) ? textOf(text['verbosity']) : '';
  // In the published schema these are texts or absent, never null.
  const texts = ['prompt_cache_key', 'safety_identifier', 'user'].filter((key) =>
    isPresent(body[key]),
  );
  return {
    ...Object.fromEntries(texts.map((key) => [key, body[key]])),
    instructions: echo('instructions', null),
    max_output_tokens: echo('max_output_tokens', null),
    max_tool_calls: echo('max_tool_calls', null),
    metadata: echo('metadata', {}),
    parallel_tool_calls: echo('parallel_tool_calls', true),
    reasoning: {
      effort: reasoning['effort'] ?? null,
      summary: reasoning['summary'] ?? reasoning['generate_summary'] ?? null,
    },
    temperature: echo('temperature', 1),
    text: { format, ...(verbosity === '' ? {} : { verbosity }) },
    tool_choice: echo('tool_choice', 'auto'),
    tools: echo('tools', []),
    top_logprobs: echo('top_logprobs', 0),
    top_p: echo('top_p', 1),
    truncation: echo('truncation', 'disabled'),
  };
}

/** One event. Its data has the type too, since Codex ignores events with the type only in their name. */
export function eventFrame(type: string, data: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}
