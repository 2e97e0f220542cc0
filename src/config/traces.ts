/**
 * `traces:` of the file and what OpenTelemetry's own variables say (OTEL_…); the file comes first. With neither
 * there are no traces.
 */
import { dirname } from 'node:path';
import { forbiddenHost, isForbiddenHost } from '../core/addresses.ts';
import { Secret } from '../core/secret.ts';
import type { CheckedFile, Environment } from './config-file.ts';
import type { ConfigIssue } from './errors.ts';
import { durationText } from './options.ts';
import type { ConfigFile } from './schema.ts';
import { type AddressScope, readPem } from './storage.ts';
import { type ClientTls, HeaderSettings, type OriginLine, type TraceSettings } from './settings.ts';

interface ReadTraces {
  readonly settings: TraceSettings | undefined;
  /** Where the address is: a variable, or undefined for the file. */
  readonly variable: string | undefined;
  readonly warnings: readonly string[];
}

type TracesForm = NonNullable<ConfigFile['traces']>;

interface Scope {
  readonly env: Environment;
  report(issue: ConfigIssue): void;
}

const signalPath = '/v1/traces';
const anyEndpoint = 'OTEL_EXPORTER_OTLP_ENDPOINT';
const ownEndpoint = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
const defaultTimeoutMs = 10_000;
const defaultDelayMs = 1000;
const maxMs = 600_000;
const none: ReadTraces = { settings: undefined, variable: undefined, warnings: [] };

export function readTraces(file: CheckedFile | undefined, { env, report }: Scope): ReadTraces {
  const form = file?.content.traces ?? undefined;
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return none;
  const complain = (message: string, key?: string): void =>
    report(
      file === undefined
        ? { path: 'traces', message }
        : file.issue(['traces', ...(key === undefined ? [] : [key])], message),
    );
  const found = address(form?.endpoint, env);
  if (found === undefined) {
    if (form !== undefined) complain(`names no endpoint: set it, or ${anyEndpoint}`);
    return none;
  }
  const { text, variable } = found;
  const problem = addressProblem(text);
  if (problem === undefined) {
    const url = withPath(text, variable === ownEndpoint);
    const settings = {
      ...settingsOf(url, form ?? {}, { env, report }),
      ...tlsOf(url, form ?? {}, { file, env, report }),
    };
    return { variable, warnings: protocolWarnings(env), settings };
  }
  if (variable === undefined) complain(problem, 'endpoint');
  else report({ path: variable, message: problem });
  return none;
}

function settingsOf(url: string, form: TracesForm, { env, report }: Scope): TraceSettings {
  const sampler = readSampler(env, report);
  const { timeout, compression, sample, follow, content } = form;
  return {
    url,
    headers: new HeaderSettings([...headersOf(env), ...lowered(form.headers)]),
    timeoutMs:
      timeout ??
      milliseconds(env, 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', report) ??
      milliseconds(env, 'OTEL_EXPORTER_OTLP_TIMEOUT', report) ??
      defaultTimeoutMs,
    sendEveryMs: milliseconds(env, 'OTEL_BSP_SCHEDULE_DELAY', report) ?? defaultDelayMs,
    compression: compression ?? (both(env, 'COMPRESSION') === 'gzip' ? 'gzip' : 'none'),
    sample: sample ?? sampler.ratio,
    follow: follow ?? sampler.follow,
    content: content ?? capturesContent(env, report),
    resource: resourceOf(form, env),
  };
}

function tlsOf(
  url: string,
  form: TracesForm,
  scope: Parameters<typeof readTracesTls>[1],
): Pick<TraceSettings, 'tls'> {
  const tls = url.startsWith('https:') ? readTracesTls(form, scope) : undefined;
  return tls === undefined ? {} : { tls };
}

function resourceOf(
  { service, attributes }: TracesForm,
  env: Environment,
): TraceSettings['resource'] {
  const ofEnv = env['OTEL_SERVICE_NAME'] ?? '';
  return {
    'service.name': 'model-gateway',
    ...pairs(env['OTEL_RESOURCE_ATTRIBUTES']),
    ...(ofEnv === '' ? {} : { 'service.name': ofEnv }),
    ...attributes,
    ...(service === undefined ? {} : { 'service.name': service }),
  };
}

/** What `check` shows: never a header's value, of the address no more than its origin. */
export function traceOrigins(
  { settings, variable }: ReadTraces,
  file: CheckedFile | undefined,
): readonly OriginLine[] {
  if (settings === undefined) return [{ path: 'traces', value: 'none', origin: 'default' }];
  const form = file?.content.traces ?? {};
  const line = (key: keyof typeof form, value: string, otherwise = 'default'): OriginLine => ({
    path: `traces.${key}`,
    value,
    origin: file === undefined || form[key] === undefined ? otherwise : file.where(['traces', key]),
  });
  const fromEnv = variable === undefined ? 'default' : 'env OTEL_…';
  return [
    line('endpoint', new URL(settings.url).origin, `env ${variable ?? anyEndpoint}`),
    ...[...settings.headers.keys()].map((name) => ({
      ...line('headers', '[secret]', 'env OTEL_EXPORTER_OTLP_HEADERS'),
      path: `traces.headers.${name}`,
    })),
    line('sample', String(settings.sample), fromEnv),
    line('follow', String(settings.follow), fromEnv),
    line('content', String(settings.content), fromEnv),
    line('service', settings.resource['service.name'] ?? '', fromEnv),
    line('timeout', durationText(settings.timeoutMs), fromEnv),
  ];
}

function address(
  ofFile: string | undefined,
  env: Environment,
): { readonly text: string; readonly variable: string | undefined } | undefined {
  if (ofFile !== undefined) return { text: ofFile, variable: undefined };
  const exporter = env['OTEL_TRACES_EXPORTER'] ?? '';
  if (exporter !== '' && !exporter.split(',').includes('otlp')) return undefined;
  for (const variable of [ownEndpoint, anyEndpoint]) {
    const text = env[variable] ?? '';
    if (text !== '') return { text, variable };
  }
  return undefined;
}

function addressProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    return 'is not an http:// or https:// address';
  }
  if (url.username !== '' || url.password !== '') return 'holds a user or password; set a header';
  return isForbiddenHost(url.hostname) ? forbiddenHost : undefined;
}

/** The variable of traces alone is taken as it is; all others are the root of a collector. */
function withPath(text: string, asItIs: boolean): string {
  const url = new URL(text);
  if (asItIs || url.pathname.endsWith(signalPath)) return url.href;
  url.pathname = `${url.pathname.replace(/\/$/, '')}${signalPath}`;
  return url.href;
}

/** The variable of traces before the one of all signals. */
function both(env: Environment, name: string): string | undefined {
  const own = env[`OTEL_EXPORTER_OTLP_TRACES_${name}`] ?? '';
  return own === '' ? env[`OTEL_EXPORTER_OTLP_${name}`] : own;
}

function milliseconds(
  env: Environment,
  variable: string,
  report: Scope['report'],
): number | undefined {
  const text = env[variable] ?? '';
  if (text === '') return undefined;
  const value = Number(text);
  if (Number.isFinite(value) && value > 0 && value <= maxMs) return value;
  report({ path: variable, message: 'is not a number of milliseconds (1 to 600000)' });
  return undefined;
}

function headersOf(env: Environment): readonly (readonly [string, string])[] {
  const general = pairs(env['OTEL_EXPORTER_OTLP_HEADERS']);
  const own = pairs(env['OTEL_EXPORTER_OTLP_TRACES_HEADERS']);
  return [...lowered(general), ...lowered(own)];
}

function lowered(
  headers: { readonly [name: string]: string } | null | undefined,
): readonly (readonly [string, string])[] {
  return Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]);
}

/** `a=1,b=2`, values percent-encoded; what is not a pair is omitted, as the specification wants it. */
function pairs(text: string | undefined): { readonly [name: string]: string } {
  const found = new Map<string, string>();
  for (const each of (text ?? '').split(',')) {
    const at = each.indexOf('=');
    if (at > 0) found.set(each.slice(0, at).trim(), decoded(each.slice(at + 1).trim()));
  }
  return Object.fromEntries(found);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function readSampler(
  env: Environment,
  report: Scope['report'],
): { readonly ratio: number; readonly follow: boolean } {
  const word = env['OTEL_TRACES_SAMPLER'] ?? '';
  const follow = word === '' || word.startsWith('parentbased_');
  switch (word.replace('parentbased_', '')) {
    case '':
    case 'always_on':
      return { ratio: 1, follow };
    case 'always_off':
      return { ratio: 0, follow };
    case 'traceidratio':
      return { ratio: ratioOf(env['OTEL_TRACES_SAMPLER_ARG'] ?? '1', report), follow };
    default:
      report({
        path: 'OTEL_TRACES_SAMPLER',
        message: 'is none of always_on, always_off, traceidratio, parentbased_…',
      });
      return { ratio: 1, follow };
  }
}

/** OpenTelemetry's own switch; content goes into spans here and into no log. */
function capturesContent(env: Environment, report: Scope['report']): boolean {
  const variable = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT';
  switch ((env[variable] ?? '').toLowerCase()) {
    case 'true':
    case 'span_only':
    case 'span_and_event':
      return true;
    case '':
    case 'false':
    case 'no_content':
    case 'event_only':
      return false;
    default:
      report({
        path: variable,
        message: 'is none of true, false, no_content, span_only, event_only, span_and_event',
      });
      return false;
  }
}

function ratioOf(text: string, report: Scope['report']): number {
  const value = Number(text);
  if (text !== '' && value >= 0 && value <= 1) return value;
  report({ path: 'OTEL_TRACES_SAMPLER_ARG', message: 'is not a number from 0 to 1' });
  return 1;
}

/** Every collector takes protobuf where it takes JSON; gRPC has another port. */
function protocolWarnings(env: Environment): readonly string[] {
  const word = both(env, 'PROTOCOL') ?? '';
  if (word === '' || word.startsWith('http/')) return [];
  return [
    `OTEL_EXPORTER_OTLP_PROTOCOL ${word}: spans go as http/protobuf all the same; name the collector's HTTP port (4318 as a rule)`,
  ];
}

const variables = { ca: 'CERTIFICATE', cert: 'CLIENT_CERTIFICATE', key: 'CLIENT_KEY' } as const;
const words = {
  ca: "the collector's authority",
  cert: "the client's certificate",
  key: "the key of the client's certificate",
} as const;

type Part = keyof typeof variables;

interface TlsScope {
  readonly file: CheckedFile | undefined;
  readonly env: Environment;
  report(issue: ConfigIssue): void;
}

/** @param named paths in the file, relative to it; those of variables are relative to the working directory. */
function readTracesTls(
  named: { readonly [P in Part]?: string | undefined },
  scope: TlsScope,
): ClientTls | undefined {
  const ca = readPart('ca', named.ca, scope);
  const cert = readPart('cert', named.cert, scope);
  const key = readPart('key', named.key, scope);
  if ((cert === undefined) !== (key === undefined)) {
    const path = 'traces';
    const message = 'names only one of the client certificate and its key; both are needed';
    scope.report(scope.file?.issue(['traces'], message) ?? { path, message });
  }
  if (ca === undefined && cert === undefined) return undefined;
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key: new Secret(key) }),
  };
}

function readPart(part: Part, named: string | undefined, scope: TlsScope): string | undefined {
  const { file, env, report } = scope;
  if (named !== undefined && file !== undefined) {
    const complain = (message: string): void => report(file.issue(['traces', part], message));
    return pemOf(part, named, { directory: dirname(file.location.path), complain });
  }
  for (const signal of ['TRACES_', '']) {
    const variable = `OTEL_EXPORTER_OTLP_${signal}${variables[part]}`;
    const path = env[variable] ?? '';
    const complain = (message: string): void => report({ path: variable, message });
    if (path !== '') return pemOf(part, path, { directory: process.cwd(), complain });
  }
  return undefined;
}

function pemOf(part: Part, path: string, scope: AddressScope): string | undefined {
  const text = readPem(path, words[part], scope);
  return text === 'wrong' ? undefined : text;
}
