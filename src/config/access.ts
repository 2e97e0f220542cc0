/** `keys:`, `teams:`, `tags:` and `trusted_proxies:` of the file: who may call, and how much they may use. */
import { hash } from 'node:crypto';
import { dollarsText } from '../core/money.ts';
import { noPolicy, type CommonPolicy, type Policy, type SharedPolicy } from '../core/policy.ts';
import type { CheckedFile } from './config-file.ts';
import { pathText, type ConfigIssue } from './errors.ts';
import type { ConfigFile } from './schema.ts';
import type { KeySettings, OriginLine, Settings } from './settings.ts';

export interface AccessScope {
  report(issue: ConfigIssue): void;
}

export type AccessSettings = Pick<Settings, 'keys' | 'policies' | 'trustedProxies'>;

type KeyForm = NonNullable<ConfigFile['keys']>[string];
type TeamForm = NonNullable<ConfigFile['teams']>[string];

/** Loads the schema library when there is something to read. */
export async function readAccess(
  file: CheckedFile | undefined,
  scope: AccessScope,
): Promise<AccessSettings> {
  const { keys, teams, tags, trusted_proxies: proxies } = file?.content ?? {};
  if (file === undefined || (keys ?? teams ?? tags ?? proxies ?? undefined) === undefined) {
    return { keys: [], policies: [], trustedProxies: [] };
  }
  const { readNamedBy, readPolicy } = await import('./access-schema.ts');
  const policyOf = (form: TeamForm, path: readonly string[]): Policy => {
    const read = readPolicy(form, noPolicy);
    if (!('path' in read)) return read;
    scope.report(file.issue([...path, read.path], read.message));
    return noPolicy;
  };
  const shared = (kind: SharedPolicy['kind'], forms: ConfigFile['tags']): readonly SharedPolicy[] =>
    Object.entries(forms ?? {}).map(([name, form]) => ({
      kind,
      name,
      ...policyOf(form, [`${kind}s`, name]),
      ...readNamedBy(form),
    }));
  const named = Object.entries(keys ?? {}).filter(([id, form]) => {
    if (!isSecret(id, digestsOf(form))) return true;
    scope.report({ ...file.issue(['keys', id], secretName), path: 'keys' });
    return false;
  });
  const read = named.map(([id, form]) => {
    const policy = policyOf(form, ['keys', id]);
    return readKey([id, form], policy, { file, scope });
  });
  checkTwins(read, { file, scope });
  return {
    keys: read,
    policies: [...shared('team', teams), ...shared('tag', tags)],
    trustedProxies: proxies ?? [],
  };
}

interface Place {
  readonly file: CheckedFile;
  readonly scope: AccessScope;
}

type ScopeMember =
  | 'models'
  | 'endpoints'
  | 'team'
  | 'owner'
  | 'tags'
  | 'cidrs'
  | 'strict'
  | 'cache'
  | 'shrink'
  | 'logContent';

/** The SHA-256 of the empty text. */
const emptyDigest = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

const secretName =
  'one name on this line is, or looks like, the secret of a key: it would appear in lists, logs and usage. ' +
  'Give the key a name, and take a new secret if this one is in use';
const secretForms =
  /^(?:sk|rk|pk|gw|gsk|xai|ghp|glpat|hf|AKIA|AIza|eyJ)[-_]?[\w-]*[A-Za-z0-9]{12}|^Bearer\b/;

/** Whether a name is the secret that is declared, or has the form of one (S4). */
function isSecret(name: string, digests: readonly string[]): boolean {
  if (secretForms.test(name) || digests.includes(hash('sha256', name))) return true;
  // Long, without a word in it: three kinds of characters, and nothing that parts them.
  const kinds = [/[a-z]/, /[A-Z]/, /\d/].filter((kind) => kind.test(name)).length;
  return kinds === 3 && /[A-Za-z0-9+/=]{24}/.test(name);
}

function digestsOf({ digest }: KeyForm): readonly string[] {
  const written = typeof digest === 'string' ? [digest] : digest;
  return written.map((text) => text.slice('sha256:'.length).toLowerCase());
}

function readKey(
  [id, form]: readonly [string, KeyForm],
  policy: Policy,
  { file, scope }: Place,
): KeySettings {
  const complain = (name: string, message: string): void =>
    scope.report(file.issue(['keys', id, name], message));
  const digests = digestsOf(form);
  if (digests.includes(emptyDigest)) complain('digest', 'is the hash of an empty text');
  const expiresAt = form.expires === undefined ? undefined : Date.parse(form.expires);
  if (form.expires !== undefined && !isDay(form.expires.slice(0, 10)))
    complain('expires', 'is not a day of the calendar');
  return {
    id,
    name: id,
    digests,
    ...scopeOf(form),
    ...(expiresAt === undefined ? {} : { expiresAt }),
    policy,
    where: file.where(['keys', id]),
  };
}

/** `Date.parse` takes the 31st of February for a day in March. */
function isDay(text: string): boolean {
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

function scopeOf(form: KeyForm): Pick<KeySettings, ScopeMember> {
  const {
    models,
    endpoints,
    team,
    owner,
    tags,
    cidrs,
    strict,
    cache,
    shrink,
    log_content: logContent,
  } = form;
  return {
    models,
    ...(endpoints === undefined ? {} : { endpoints }),
    ...(team === undefined ? {} : { team }),
    ...(owner === undefined ? {} : { owner }),
    ...(tags === undefined ? {} : { tags }),
    ...(cidrs === undefined ? {} : { cidrs }),
    ...(strict === undefined ? {} : { strict }),
    ...(cache === undefined ? {} : { cache }),
    ...(shrink === undefined ? {} : { shrink }),
    ...(logContent === undefined ? {} : { logContent }),
  };
}

/** One secret cannot be two keys. */
function checkTwins(keys: readonly KeySettings[], { file, scope }: Place): void {
  const first = new Map<string, string>();
  for (const { id, digests } of keys) {
    for (const digest of digests) {
      const other = first.get(digest);
      if (other !== undefined) {
        const message = other === id ? 'occurs twice' : `is the digest of ${other}, too`;
        scope.report(file.issue(['keys', id, 'digest'], message));
      }
      first.set(digest, id);
    }
  }
}

/** Each effective value with its origin; of a key never its digest. */
export function accessOrigins(
  { keys, policies, trustedProxies }: AccessSettings,
  file: CheckedFile | undefined,
): readonly OriginLine[] {
  if (file === undefined) return [];
  const line = (path: readonly string[], value: string): OriginLine => ({
    path: pathText(path),
    value,
    origin: file.where(path),
  });
  return [
    ...keys.map((key) =>
      line(
        ['keys', key.id],
        [`models ${key.models.join(', ')}`, ...textsOf(key.policy)].join('; '),
      ),
    ),
    ...policies.map((policy) =>
      line([`${policy.kind}s`, policy.name], textsOf(policy).join('; ') || 'no limits'),
    ),
    ...(trustedProxies.length === 0 ? [] : [line(['trusted_proxies'], trustedProxies.join(', '))]),
  ];
}

function textsOf({ limits, budgets, namedBy }: CommonPolicy): readonly string[] {
  return [
    ...limits.map(({ kind, amount, model }) => {
      const unit = kind === 'concurrent' ? 'concurrent calls' : `${kind} a minute`;
      return `${amount} ${unit}${model === undefined ? '' : ` of ${model}`}`;
    }),
    ...budgets.map(({ nanodollars, per, timeZone }) =>
      per === 'ever'
        ? `$${dollarsText(nanodollars)} in all`
        : `$${dollarsText(nanodollars)} a ${per} (${timeZone})`,
    ),
    ...(namedBy === undefined
      ? []
      : [
          `named by ${[...namedBy.keys, ...namedBy.teams.map((team) => `team ${team}`)].join(', ')}`,
        ]),
  ];
}
