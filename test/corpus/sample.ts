/** One small request and what must become of it. The table of decisions says how it is answered. */
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import type { UpstreamDialect } from '../support/dialects.ts';
import type { AnyDialect } from '../support/reading.ts';

/** What an upstream of a foreign dialect must get of a sample. */
export interface Shown {
  /** What it must get, beside whatever else it gets. */
  readonly arrives?: JsonObject;
  /** What it must not get at the top level. */
  readonly absent?: readonly string[];
  /** The model behind; by default one of a server that nothing special is known of. */
  readonly behind?: string;
  /** Rows that are noted beside the sample's own. */
  readonly noted?: readonly string[];
  /** The field that a refusal or a note names, where it is another one. */
  readonly named?: string;
  /** Answered without asking. */
  readonly unasked?: true;
}

/** A model whose server knows the deprecated functions. Elsewhere they are translated. */
export const legacyFunctions = 'openai/gpt-4o';

/** The members of `Shown` are for the first upstream dialect of the client's table. */
export interface Sample<Body> extends Shown {
  /** Put over a minimal request. */
  readonly sends: Body;
  /** The same for further upstream dialects; `named` and `unasked` hold there as well. */
  readonly on?: { readonly [U in UpstreamDialect]?: Shown };
  /** Other rows that the same request shows. */
  readonly also?: readonly string[];
  /** The messages that an upstream of the client's own dialect gets instead; noted. */
  readonly relayed?: readonly object[];
  /** The model behind a relay; by default one of a server that nothing special is known of. */
  readonly relayedTo?: string;
  readonly headers?: { readonly [name: string]: string };
  /** Sent by clients, but not a body by the published schema of its own dialect. */
  readonly beyondSchema?: true;
  /** Whatever speaks the client's dialect itself would refuse it as well. */
  readonly refusedByAll?: true;
}

/** The upstream dialect that the samples of a client dialect say most of. */
export const firstUpstream: { readonly [D in AnyDialect]: AnyDialect } = {
  chat: 'messages',
  messages: 'chat',
  responses: 'chat',
};

/** What a sample shows at an upstream dialect. */
export function shownAt(
  sample: Sample<object>,
  upstream: UpstreamDialect,
  client: AnyDialect,
): Shown {
  if (upstream === firstUpstream[client]) return sample;
  const { named, unasked } = sample;
  return {
    ...(named === undefined ? {} : { named }),
    ...(unasked === undefined ? {} : { unasked }),
    ...sample.on?.[upstream],
  };
}

/** By the row's path and case, as `rowId` spells them. */
export interface Samples<Body> {
  readonly [row: string]: Sample<Body>;
}

/** The bare minimum of a PNG that every reader takes as one. */
export const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
export const pdf = Buffer.from('%PDF-1.4\n%%EOF\n').toString('base64');
export const objectSchema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
} as const;

/** Whether `body` holds all of `wanted`: members of objects, and lists entry by entry. */
export function holds(body: Json | undefined, wanted: Json | undefined): boolean {
  if (isList(wanted)) {
    return (
      isList(body) &&
      body.length === wanted.length &&
      wanted.every((each, i) => holds(body[i], each))
    );
  }
  if (!isObject(wanted)) return body === wanted;
  return isObject(body) && Object.entries(wanted).every(([key, each]) => holds(body[key], each));
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}
