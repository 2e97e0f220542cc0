/**
 * Which members of a request an upstream's 400 complains about, whatever its shape (B9): `param` of
 * OpenAI and its kin, `loc` of pydantic servers (vLLM, Mistral, FastAPI), names quoted in sentences
 * (Groq, xAI, Gemini, Anthropic).
 */
import type { Json, JsonObject } from '../core/conversation.ts';
import type { GatewayError } from '../core/errors.ts';
import { tryParseInner } from '../core/json-inner.ts';
import { isObject } from '../core/json.ts';

export interface Complaint {
  /** Paths as the upstream spelled them, in snake case, without indexes: `messages.role`, `stop`. */
  readonly names: ReadonlySet<string>;
  /** All that it said. */
  readonly text: string;
}

/** Words by which a member itself or its value is refused; without one of them a name is only a name. */
const refusal = new RegExp(
  [
    'un(supported|known|recogni[sz]ed|expected|permitted|available)',
    'not (be )?(supported|permitted|allowed|recogni[sz]ed|available|valid|compatible|one of)',
    '(does|do|is|are|can)(n.t| not) (currently )?(support|allow|accept|have)',
    'cannot (find field|both|be)',
    'extra (inputs|fields)',
    'extra_forbidden',
    'must (be|contain)',
    'invalid (value|parameter|argument|type|.?signature)',
    'deprecated',
    'too (long|many|large)',
    'maximum',
    'only (supports?|one|the default)',
    'requires',
    'use .{1,100} instead',
  ].join('|'),
  'i',
);

/** Undefined when the error is no refusal of a member. */
export function readComplaint(error: GatewayError): Complaint | undefined {
  const { upstream } = error;
  if (error.code !== 'upstream_rejected' || upstream === undefined) return undefined;
  if (upstream.status !== 400 && upstream.status !== 422) return undefined;
  const texts: string[] = [];
  const names = new Set<string>();
  gather(tryParseInner(upstream.body) ?? upstream.body, { texts, names });
  const text = texts.join('\n');
  if (!refusal.test(text)) return undefined;
  for (const name of quotedNames(text)) names.add(name);
  return { names, text };
}

interface Gathering {
  readonly texts: string[];
  readonly names: Set<string>;
}

const textKeys: ReadonlySet<string> = new Set([
  'message',
  'msg',
  'detail',
  'code',
  'type',
  'error',
  'description',
]);

function gather(value: Json, gathering: Gathering, depth = 0): void {
  if (depth > 6) return;
  if (typeof value === 'string') gathering.texts.push(value);
  else if (Array.isArray(value)) for (const each of value) gather(each, gathering, depth + 1);
  if (!isObject(value)) return;
  gatherNames(value, gathering.names);
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined || member === null) continue;
    if (typeof member === 'object' || textKeys.has(key)) gather(member, gathering, depth + 1);
  }
}

function gatherNames({ param, loc, field }: JsonObject, names: Set<string>): void {
  for (const name of [param, field]) if (typeof name === 'string') names.add(normal(name));
  if (Array.isArray(loc)) names.add(normal(loc.join('.')));
}

const quoted = /["'`]([A-Za-z][A-Za-z0-9_.[\]]{1,60})["'`]/g;
/** `max_tokens: 5 > 4`, `tools.0.custom.strict: Extra inputs…`, `parameter stop`, `model: stop`. */
const bare = [
  /(?:^|[\n"'`:]\s{0,3})([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*):/g,
  /(?:parameters?|argument|field|property|key|name):?\s{1,3}["'`\\]{0,3}([A-Za-z][A-Za-z0-9_.]{0,60})/gi,
  /on this model:\s*([A-Za-z][A-Za-z0-9_]*)/g,
  /\b([a-z][a-z_]{0,60}) (?:parameter|argument|field|is not|must be)\b/gi,
  /\b([a-z]+(?:_[a-z]+)+)\b/g,
  /'loc': [([]'body', '([^)\]]{0,200})'/g,
];

function* quotedNames(text: string): Generator<string> {
  for (const pattern of [quoted, ...bare]) {
    for (const match of text.matchAll(pattern)) {
      const name = match[1];
      if (name !== undefined) yield normal(name);
    }
  }
}

/** `body.stopSequences` → `stop_sequences`; `messages[0].role`, `tools.0.function` → without numbers. */
function normal(name: string): string {
  return name
    .replace(/', '|\[(\d+)\]/g, '.$1')
    .replace(/\.?\b\d+\b/g, '')
    .replace(/\.{2,}/g, '.')
    .replace(/^(body|request)\./, '')
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/\.$/, '');
}
