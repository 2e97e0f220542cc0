/** One small request and what must become of it. The table of decisions says how it is answered. */
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';

export interface Sample<Body> {
  /** Put over a minimal request. */
  readonly sends: Body;
  /** What the upstream of the other dialect must get, beside whatever else it gets. */
  readonly arrives?: JsonObject;
  /** What the upstream of the other dialect must not get at the top level. */
  readonly absent?: readonly string[];
  /** Other rows that the same request shows. */
  readonly also?: readonly string[];
  /** The messages that an upstream of the client's own dialect gets instead; noted. */
  readonly relayed?: readonly object[];
  /** The model behind; by default one of a server that nothing special is known of. */
  readonly behind?: string;
  /** The model behind a relay; by default one of a server that nothing special is known of. */
  readonly relayedTo?: string;
  /** Rows that are noted beside the sample's own. */
  readonly noted?: readonly string[];
  /** The field that a refusal or a note names, where it is another one. */
  readonly named?: string;
  readonly headers?: { readonly [name: string]: string };
  /** Sent by clients, but not a body by the published schema of its own dialect. */
  readonly beyondSchema?: true;
  /** Answered without asking an upstream of the other dialect. */
  readonly unasked?: true;
  /** Whatever speaks the client's dialect itself would refuse it as well. */
  readonly refusedByAll?: true;
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
