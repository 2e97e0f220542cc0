/** `providers:` of the file, and what the environment says about known vendors. */
import { hostname, networkInterfaces } from 'node:os';
import { forbiddenHost, isForbiddenHost } from '../core/forbidden-address.ts';
import type { Timeouts } from '../core/provider.ts';
import { leadsTo, type Address } from './address.ts';
import type { CheckedFile } from './config-file.ts';
import type { ConfigIssue } from './config-error.ts';
import type { KnownProvider, KnownProviders } from './known-provider.ts';
import { readNetwork } from './network-section.ts';
import type { Environment } from './references.ts';
import { keysProblem, readKeys } from './routing-section.ts';
import type { ConfigFile } from './schema.ts';
import { HeaderSettings, type ProviderSettings } from './settings.ts';

export interface ProviderScope {
  readonly known: KnownProviders;
  readonly env: Environment;
  /** The gateway's own listeners. */
  readonly own: readonly Address[];
  report(issue: ConfigIssue): void;
}

type ProviderForm = NonNullable<NonNullable<ConfigFile['providers']>[string]>;
type TimeoutsForm = NonNullable<ConfigFile['timeouts']>;

/** Checks each declaration as far as it can be checked without asking anyone. */
export function readProviders(
  file: CheckedFile | undefined,
  scope: ProviderScope,
): readonly ProviderSettings[] {
  checkEnvironment(file, scope);
  if (file === undefined) return [];
  return Object.entries(file.content.providers ?? {}).map(([id, form]) => {
    const declared = form ?? {};
    const complain = (message: string, ...keys: readonly string[]): void =>
      scope.report(file.issue(['providers', id, ...keys], message));
    checkCompleteness(id, declared, { scope, complain });
    const keys = keysProblem(declared);
    if (keys !== undefined) {
      complain(keys, declared.credentials === undefined ? 'api_key' : 'credentials');
    }
    if (declared.base_url !== undefined) {
      const problem = addressProblem(declared.base_url, scope.own);
      if (problem !== undefined) complain(problem, 'base_url');
    }
    return {
      id,
      ...(declared.dialect === undefined ? {} : { dialect: declared.dialect }),
      ...(declared.base_url === undefined ? {} : { baseUrl: declared.base_url }),
      ...readKeys(declared),
      headers: readHeaders(declared, complain),
      ...readWays(id, declared, { scope, complain }),
      ...readNetwork(declared, file, complain),
      ...optionalTimeouts(declared.timeouts),
      where: file.where(['providers', id]),
    };
  });
}

/** `timeouts` of a section under the names that the gateway uses; absent ones stay absent. */
export function optionalTimeouts(form: TimeoutsForm | null | undefined): {
  readonly timeouts?: Partial<Timeouts>;
} {
  if (form === null || form === undefined) return {};
  const timeouts = {
    ...(form.connect === undefined ? {} : { connectMs: form.connect }),
    ...firstEvent(form),
    ...(form.document === undefined ? {} : { documentMs: form.document }),
    ...(form.idle === undefined ? {} : { idleMs: form.idle }),
    ...(form.total === undefined ? {} : { totalMs: form.total }),
    ...(form.min_rate === undefined ? {} : { minBytesPerS: form.min_rate }),
    ...(form.rate_window === undefined ? {} : { rateWindowMs: form.rate_window }),
  };
  return Object.keys(timeouts).length === 0 ? {} : { timeouts };
}

/** Who sets the one limit of the first event means it, whatever the model does before. */
function firstEvent({
  first_event: firstEventMs,
  reasoning: reasoningMs = firstEventMs,
}: NonNullable<TimeoutsForm>): Partial<Timeouts> {
  return {
    ...(firstEventMs === undefined ? {} : { firstEventMs }),
    ...(reasoningMs === undefined ? {} : { reasoningMs }),
  };
}

/** What the address behaves like, and what may be asked of it. */
function readWays(
  id: string,
  form: ProviderForm,
  { scope, complain }: Check,
): Pick<
  ProviderSettings,
  'like' | 'betas' | 'region' | 'serverTools' | 'onAbort' | 'traceContext'
> {
  const { like, betas, region, server_tools: serverTools } = form;
  const dialect = form.dialect ?? scope.known.get(id)?.dialect;
  if (like !== undefined) checkLikeness(like, dialect, { scope, complain });
  if (betas !== undefined && dialect === 'openai-chat') {
    complain('has no meaning for openai-chat: such servers get no anthropic-beta', 'betas');
  }
  if (region !== undefined && dialect === 'anthropic-messages') {
    complain(
      'has no meaning for anthropic-messages: such servers get inference_geo themselves',
      'region',
    );
  }
  return {
    ...(like === undefined ? {} : { like }),
    ...(betas === undefined ? {} : { betas }),
    ...(region === undefined ? {} : { region }),
    ...(serverTools === undefined ? {} : { serverTools }),
    ...switches(form),
  };
}

function switches({
  on_abort: wish,
  trace_context: traceContext,
}: ProviderForm): Pick<ProviderSettings, 'onAbort' | 'traceContext'> {
  return {
    ...(wish === 'drain' ? { onAbort: wish } : {}),
    ...(traceContext === undefined ? {} : { traceContext }),
  };
}

function checkLikeness(like: string, dialect: string | undefined, check: Check): void {
  const known = check.scope.known.get(like);
  if (known === undefined || known.embedded === true) {
    check.complain(`"${like}" is no known vendor`, 'like');
  } else if (dialect !== undefined && known.dialect !== dialect) {
    check.complain(`"${like}" speaks ${known.dialect}, this address ${dialect}`, 'like');
  }
}

type Complain = (message: string, ...keys: readonly string[]) => void;

interface Check {
  readonly scope: ProviderScope;
  readonly complain: Complain;
}

function checkCompleteness(id: string, form: ProviderForm, { scope, complain }: Check): void {
  const known = scope.known.get(id);
  if (known?.embedded === true) complain(`"${id}" is the embedded engine; choose another name`);
  if (known !== undefined) return checkKey(known, form, { scope, complain });
  const missing = [
    ...(form.dialect === undefined ? ['dialect'] : []),
    ...(form.base_url === undefined ? ['base_url'] : []),
  ];
  if (missing.length > 0) {
    complain(`"${id}" is no known vendor: ${missing.join(' and ')} must be set`);
  }
}

/** Without a key every call to the vendor would fail; an address of one's own may need none. */
function checkKey(known: KnownProvider, form: ProviderForm, { scope, complain }: Check): void {
  const { keyVariable, baseUrlVariable } = known;
  if (keyVariable === undefined || isSet(scope.env, keyVariable)) return;
  if (form.api_key !== undefined || form.credentials !== undefined) return;
  if (Object.keys(form.headers ?? {}).length > 0) return;
  if (form.base_url !== undefined || isSet(scope.env, baseUrlVariable)) return;
  complain(`there is no key: set ${keyVariable} or api_key`);
}

/** A vendor's address variable that was meant for clients of this gateway would call it in a circle. */
function checkEnvironment(file: CheckedFile | undefined, scope: ProviderScope): void {
  for (const [id, { keyVariable, baseUrlVariable = '' }] of scope.known) {
    const address = scope.env[baseUrlVariable];
    if (address === undefined || address === '') continue;
    const declared = declaration(file, id);
    if (declared?.base_url !== undefined) continue;
    if (declared === undefined && !isSet(scope.env, keyVariable)) continue;
    const problem = addressProblem(address, scope.own);
    if (problem !== undefined) scope.report({ path: baseUrlVariable, message: problem });
  }
}

function declaration(file: CheckedFile | undefined, id: string): Partial<ProviderForm> | undefined {
  return file?.declared.has(id) === true ? (file.content.providers?.[id] ?? {}) : undefined;
}

function isSet(env: Environment, name: string | undefined): boolean {
  return name !== undefined && env[name] !== undefined && env[name] !== '';
}

/** What is wrong with a base address. The address itself is not quoted: it may hold a secret. */
function addressProblem(text: string, own: readonly Address[]): string | undefined {
  if (/[{}]/.test(text)) return 'holds a placeholder in braces that nothing fills in';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    return 'is no http:// or https:// address';
  }
  if (url.username !== '' || url.password !== '') {
    return 'holds a user or password; use api_key or headers';
  }
  if (url.search !== '' || url.hash !== '') return 'must end with its path, without ? or #';
  return hostProblem(url, own);
}

function hostProblem(url: URL, own: readonly Address[]): string | undefined {
  if (isForbiddenHost(url.hostname)) return forbiddenHost;
  if (own.some((address) => leadsTo(url, address, ownNames()))) {
    return 'leads to this gateway itself';
  }
  return undefined;
}

function ownNames(): ReadonlySet<string> {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return new Set([hostname().toLowerCase(), ...addresses.map(({ address }) => address)]);
}

/** Headers that the HTTP client writes itself: a second one would contradict it. */
const ownHeaders = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

function readHeaders(form: ProviderForm, complain: Complain): HeaderSettings {
  const headers = new HeaderSettings();
  for (const [name, value] of Object.entries(form.headers ?? {})) {
    const lower = name.toLowerCase();
    if (ownHeaders.has(lower)) complain('is set by the gateway', 'headers', name);
    if (headers.has(lower)) complain('stands twice, in two spellings', 'headers', name);
    headers.set(lower, value);
  }
  return headers;
}
