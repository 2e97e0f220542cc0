/** Maps request paths to endpoints, and describes unknown ones. */
import type { Principal } from '../access/keys/principal.ts';
import type { ClientDialect } from '../core/dialect.ts';
import { GatewayError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import type { JsonObject } from '../json/value.ts';
import type { Step } from './overload/load.ts';

export interface RequestPath {
  /** Without the query string, and without a doubled `/v1`. */
  readonly path: string;
  readonly query: string;
}

/** Splits a target. Paths are compared exactly, undecoded: `%2e` and `//` match nothing (B25). */
export function readPath(url: string): RequestPath {
  const queryAt = url.indexOf('?');
  const path = queryAt === -1 ? url : url.slice(0, queryAt);
  return {
    // Some clients append /v1 to a base address that already ends in it.
    path: path.startsWith('/v1/v1/') ? path.slice(3) : path,
    query: queryAt === -1 ? '' : url.slice(queryAt + 1),
  };
}

// The paths of the data plane that need a key.

/** The first one writes the errors of requests that no dialect claims. */
export type ClientDialects = readonly [ClientDialect, ...ClientDialect[]];

export const modelsPath = '/v1/models';

/** The paths on which tokens are counted, each with the dialect of its requests. */
export function countingPaths(dialects: ClientDialects): ReadonlyMap<string, ClientDialect> {
  const paths = new Map<string, ClientDialect>();
  for (const dialect of dialects) {
    if (dialect.count !== undefined) paths.set(dialect.count.path, dialect);
  }
  return paths;
}

/** The other paths that need a key; they call no model. */
export function sidePaths(dialects: ClientDialects): readonly string[] {
  return [...countingPaths(dialects).keys(), modelsPath];
}

/** All paths on which models are called, each with its dialect. */
export function generatingPaths(dialects: ClientDialects): ReadonlyMap<string, ClientDialect> {
  return new Map(
    dialects.flatMap((dialect) => dialect.paths.map((path) => [path, dialect] as const)),
  );
}

/** The paths on which conversations are compacted, each with its dialect. */
export function compactingPaths(dialects: ClientDialects): ReadonlyMap<string, ClientDialect> {
  return new Map(
    dialects.flatMap((dialect) =>
      dialect.compactPath === undefined ? [] : [[dialect.compactPath, dialect] as const],
    ),
  );
}

/** The generating paths relative to `/v1/`. */
export function generatingEndpoints(dialects: ClientDialects): readonly string[] {
  return endpointsOf(generatingPaths(dialects));
}

/** The same with the paths on which conversations are compacted. */
export function callingEndpoints(dialects: ClientDialects): readonly string[] {
  return [...generatingEndpoints(dialects), ...endpointsOf(compactingPaths(dialects))];
}

function endpointsOf(paths: ReadonlyMap<string, ClientDialect>): readonly string[] {
  return [...paths.keys()].map((path) => path.replace(/^\/v1\//, ''));
}

// Paths without a key: probes and a greeting.

export const openPaths: readonly string[] = ['/', '/healthz', '/readyz'];

interface OpenFacts {
  readonly version: string;
  /** Why the gateway should receive no traffic now; undefined when ready. */
  readonly notReady: () => string | undefined;
  /** The pressure level. */
  readonly step: Step;
}

/** For a browser that opens the data plane. It does not name the address of the admin plane. */
const dashboard = 'on the admin plane of this gateway, by default port 8687 of its machine';

const greetedEndpoints = ['/v1/chat/completions', '/v1/messages', '/v1/responses'];

/** What `/` sends to a browser besides the page: nothing is loaded, run, framed or sent from it. */
export const greetingHeaders: readonly string[] = Object.entries({
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}).flat();

/** Whether a request asks for a page by name, as browsers do; programs accept anything. */
export function wantsPage(path: string, accept: string | undefined): boolean {
  return path === '/' && accept !== undefined && /(^|,)\s*text\/html\s*(;|,|$)/i.test(accept);
}

/** The greeting for a person who opened the data plane in a browser. */
export function greetingPage(version: string): string {
  const endpoints = greetedEndpoints.map((path) => `<li><code>${path}</code></li>`).join('\n');
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Model Gateway</title>
<h1>Model Gateway ${version}</h1>
<p>This address answers programs. They send a key, and requests to:</p>
<ul>
${endpoints}
</ul>
<p>The dashboard is ${dashboard}. <code>model-gateway status</code> names its address.</p>
</html>
`;
}

/**
 * Under pressure the gateway stays alive and ready: a restart would end running calls, and without this
 * instance the others would get its calls as well.
 */
export function openAnswer(
  path: string,
  { version, notReady, step }: OpenFacts,
): { readonly status: number; readonly body: JsonObject } {
  if (path === '/') {
    const body = { name: 'model-gateway', version, endpoints: greetedEndpoints, dashboard };
    return { status: 200, body };
  }
  if (path === '/healthz') {
    return { status: 200, body: { status: 'ok', ...(step === 0 ? {} : { pressure: step }) } };
  }
  const why = notReady();
  if (why === undefined) return { status: 200, body: { status: 'ready' } };
  return { status: 503, body: { status: 'not ready', why } };
}

// Hints for unknown paths (E7): another API, or a wrong base address.

const served = 'POST /v1/chat/completions, POST /v1/messages and POST /v1/responses';

interface KnownPath {
  /** Matches the path without `/v1`. */
  readonly form: RegExp;
  readonly sentence: string;
}

/** Unsupported APIs with their equivalents here; the first match counts. */
const otherApis: readonly KnownPath[] = [
  {
    form: /^\/responses\/./,
    sentence:
      'There are POST /v1/responses, POST /v1/responses/compact, POST /v1/responses/input_tokens, GET and DELETE /v1/responses/ID, GET /v1/responses/ID/input_items and POST /v1/responses/ID/cancel.',
  },
  {
    form: /^\/messages\/batches(\/|$)/,
    sentence: 'Message batches are not offered; send each request to POST /v1/messages.',
  },
  {
    form: /^\/batches(\/|$)/,
    sentence: `Batches are not offered; send each request by itself: ${served}.`,
  },
  {
    form: /^\/(complete|completions)$/,
    sentence: `Completions of a plain text are not offered; send the text as a message: ${served}.`,
  },
  {
    form: /^\/(embeddings|rerank|moderations|images|audio|videos|realtime)(\/|$)/,
    sentence: `Only models that chat are offered: ${served}.`,
  },
  {
    form: /^\/(files|uploads|vector_stores|containers|assistants|threads|conversations|fine_tuning|evals|skills|organizations?)(\/|$)/,
    sentence: `The gateway keeps no files, conversations or jobs of clients; it offers ${served}.`,
  },
  {
    form: /^\/(health|healthcheck|live|livez|ping|ready|status)$/,
    sentence: 'The probes are GET /healthz and GET /readyz.',
  },
  {
    form: /^\/chat\/completions\/./,
    sentence: 'Kept chat completions are not offered; there is POST /v1/chat/completions only.',
  },
];

/** APIs of other vendors, outside `/v1`. */
const foreignApis: readonly KnownPath[] = [
  {
    form: /^\/api\/(chat|generate|tags|show|embed)/,
    sentence: 'This is an address of Ollama’s own API.',
  },
  { form: /^\/v1(beta|alpha)\d*\//, sentence: 'This is an address of Gemini’s own API.' },
  { form: /^\/openai\/(deployments|v1)\//, sentence: 'This is an address of Azure OpenAI.' },
  { form: /^\/(model|invocations)(\/|$)/, sentence: 'This is an address of Amazon’s own API.' },
];

/** Paths that are served, without `/v1`; below `responses` they are `compact`, `input_tokens` and stored responses. */
const ownPaths =
  /^\/(chat\/completions|messages(\/count_tokens)?|responses(\/[\w-]+(\/(cancel|input_items))?)?|models(\/.*)?)$/;

/** A 404 that says what is wrong with this path and what to use instead. */
export function notFound(path: string): GatewayError {
  const shown = path.length > maxNameLength ? `${path.slice(0, maxNameLength)}…` : path;
  return new GatewayError('route_not_found', `There is no endpoint ${shown}. ${hintFor(path)}`);
}

function hintFor(path: string): string {
  const single = path.replace(/\/{2,}/g, '/');
  if (single !== path && ownPaths.test(single.replace(/^\/v1/, ''))) {
    return `The path is ${single}: the base address of the client must not end in a slash.`;
  }
  const [, prefix = '', rest = path] = /^((?:\/v1)*)(\/[^]*)$/.exec(path) ?? [];
  const plain = rest.replace(/\/$/, '');
  if (ownPaths.test(plain)) {
    const right = `/v1${plain}`;
    if (prefix === '') {
      return `The base address of the client lacks /v1; with it the path is ${right}.`;
    }
    if (prefix !== '/v1') {
      return `/v1 stands in it several times: the base address of the client must not hold what the client adds. The path is ${right}.`;
    }
    return rest === plain
      ? `The path is ${right}.`
      : `The path is ${right}, without a slash at its end.`;
  }
  const other = otherApis.find(({ form }) => form.test(plain));
  if (other !== undefined) return other.sentence;
  const foreign = foreignApis.find(({ form }) => form.test(path));
  const what = foreign === undefined ? '' : `${foreign.sentence} `;
  return `${what}The gateway offers ${served}.`;
}

// Errors for requests that name something unknown or not permitted (E5–E7).

/** Names and paths are echoed to the client up to this length. */
export const maxNameLength = 256;

/** @throws GatewayError `forbidden` when the key may not use this endpoint. */
export function requireScope(principal: Principal, scope: string): void {
  if (principal.allowsEndpoint(scope)) return;
  throw new GatewayError('forbidden', 'This key may not use this endpoint.');
}

/** Longer names are compared with no other: the time for it grows with the square of their length. */
const maxComparedLength = 48;
/** Names that are examined, and of those the ones of similar length that are compared: a few ms at most. */
const maxLookedAt = 2000;
const maxCompared = 100;

/**
 * One answer for unknown models and models that the key may not use (E6).
 * @param usable names that this key may use, which one of them may be meant
 * @param hasEngine whether this build can run models itself
 */
export function unknownModel(
  model: string,
  usable: Iterable<string> = [],
  hasEngine = true,
): GatewayError {
  const shown = model.length > maxNameLength ? `${model.slice(0, maxNameLength)}…` : model;
  const hint = hasEngine || !model.startsWith('local/') ? modelHint(model, usable) : noEngine;
  return new GatewayError(
    'model_not_found',
    `The model "${shown}" does not exist or this key may not use it. ${hint}`,
    {
      path: ['model'],
    },
  );
}

const noEngine =
  'This build has no engine for local models: use a model of a provider, or the npm package of the gateway, which has one.';

function modelHint(model: string, usable: Iterable<string>): string {
  const meant = meantModel(model, usable);
  if (meant === undefined) return 'GET /v1/models lists what it may use.';
  return `Did you mean "${meant}"?`;
}

/** What this key may use of what is known. */
export function* usableNames(
  registry: { knownNames(): Iterable<string> },
  principal: Pick<Principal, 'allowsModel'>,
): Generator<string> {
  for (const name of registry.knownNames()) if (principal.allowsModel(name)) yield name;
}

function meantModel(model: string, usable: Iterable<string>): string | undefined {
  if (model.length > maxComparedLength) return undefined;
  /** By what people may write of it: the whole name, and the model without its provider. */
  const names = new Map<string, string>();
  let lookedAt = 0;
  for (const name of usable) {
    lookedAt += 1;
    if (lookedAt > maxLookedAt || names.size >= maxCompared) break;
    for (const written of [name, name.slice(name.indexOf('/') + 1)]) {
      const differs = Math.abs(written.length - model.length);
      if (differs <= model.length / 3 && !names.has(written)) names.set(written, name);
    }
  }
  const meant = nearest(model, names.keys());
  return meant === undefined ? undefined : names.get(meant);
}

export class MethodNotAllowed extends GatewayError {
  /** Value of the `allow` header. */
  readonly allow: string;

  constructor(allow: string) {
    super('method_not_allowed', `This endpoint takes ${allow} only.`);
    this.allow = allow;
  }
}

/** @throws GatewayError the same as for an unknown name. */
export function requireModels(principal: Principal, names: readonly string[]): void {
  for (const name of names) if (!principal.allowsModel(name)) throw unknownModel(name);
}

/** The methods of paths that are read, for `allow`. */
export const readingMethods = 'GET, HEAD';

/** Whether a request reads: HEAD is answered as GET, and Node leaves out the body. */
export function isReading({ method }: { readonly method?: string | undefined }): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** What a path takes, for `allow`. */
export function allowedMethods(path: string): string {
  return !path.startsWith('/v1/') || path.startsWith(modelsPath) ? readingMethods : 'POST';
}
