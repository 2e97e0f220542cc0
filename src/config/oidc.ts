/** `oidc:` of the file: where people sign in, and which claims give which roles. */
import { forbiddenHost, isForbiddenHost } from '../core/addresses.ts';
import { Secret } from '../core/secret.ts';
import type { CheckedFile } from './config-file.ts';
import { type ConfigIssue, isLoopback } from './errors.ts';
import type { OriginLine } from './settings.ts';

/** A team whose people sign in. */
export interface MemberTeam {
  /** As keys and limits name it. */
  readonly name: string;
  /** Groups whose people are members. */
  readonly members: readonly string[];
  /** Groups whose people lead the team. */
  readonly leads: readonly string[];
  /** Globs of the models that a member's key may have. */
  readonly models: readonly string[];
  /** Active keys of one person in the team. */
  readonly keys: number;
  /** The longest life of a member's key; Infinity = for ever. */
  readonly expiresMs: number;
}

/** The provider of identities, and what its claims mean. */
export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** Origin of the dashboard, as browsers open it. */
  readonly url: string;
  /** What the button says after "Sign in with". */
  readonly label: string;
  readonly scopes: string;
  /** Names of claims. */
  readonly claims: { readonly person: string; readonly name: string; readonly groups: string };
  /** Groups by role. */
  readonly roles: {
    readonly owner: readonly string[];
    readonly operator: readonly string[];
    readonly viewer: readonly string[];
  };
  readonly teams: readonly MemberTeam[];
}

type Form = NonNullable<CheckedFile['content']['oidc']>;

/** Undefined = the admin token is the only way to sign in. */
export function readOidc(
  file: CheckedFile | undefined,
  { report }: { report(issue: ConfigIssue): void },
): OidcSettings | undefined {
  const form = file?.content.oidc ?? undefined;
  if (file === undefined || form === undefined) return undefined;
  const complain = (path: readonly string[], message: string | undefined): void => {
    if (message !== undefined) report(file.issue(path, message));
  };
  complain(['oidc', 'issuer'], addressProblem(form.issuer));
  complain(['oidc', 'url'], addressProblem(form.url) ?? originProblem(form.url));
  const roles = rolesOf(form);
  const teams = teamsOf(form);
  const named = [Object.values(roles), teams.flatMap((team) => [team.members, team.leads])].flat();
  if (named.every((each) => each.length === 0)) {
    complain(['oidc'], 'names no group in roles or teams, so no person could sign in');
  }
  return {
    issuer: form.issuer,
    clientId: form.client_id,
    clientSecret: new Secret(form.client_secret),
    url: URL.parse(form.url)?.origin ?? form.url,
    label: form.label ?? (URL.parse(form.issuer)?.hostname || 'OpenID Connect'),
    scopes: form.scopes ?? 'openid profile email',
    claims: claimsOf(form),
    roles,
    teams,
  };
}

function claimsOf({ claims }: Form): OidcSettings['claims'] {
  const { person = 'sub', name = 'name', groups = 'groups' } = claims ?? {};
  return { person, name, groups };
}

function rolesOf({ roles }: Form): OidcSettings['roles'] {
  const { owner = [], operator = [], viewer = [] } = roles ?? {};
  return { owner, operator, viewer };
}

function teamsOf({ teams }: Form): readonly MemberTeam[] {
  return Object.entries(teams ?? {}).map(([name, team]) => {
    const { members = [], leads = [], models = ['*'], keys = 10, expires } = team;
    return { name, members, leads, models, keys, expiresMs: expires ?? Number.POSITIVE_INFINITY };
  });
}

/** Tokens and cookies travel over TLS, or stay on this machine. */
function addressProblem(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return 'is not an https:// address';
  if (url.username !== '' || url.password !== '') return 'holds a user or password';
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    return 'must be an https:// address (http:// only on this machine)';
  }
  if (isForbiddenHost(url.hostname)) return forbiddenHost;
  return undefined;
}

function originProblem(text: string): string | undefined {
  const url = URL.parse(text);
  const isOrigin = url !== null && url.pathname === '/' && url.search === '' && url.hash === '';
  return isOrigin ? undefined : 'is the address of the dashboard without a path';
}

/** What `check` shows. */
export function oidcOrigins(
  oidc: OidcSettings | undefined,
  file: CheckedFile | undefined,
): readonly OriginLine[] {
  if (oidc === undefined || file === undefined) return [];
  const line = (key: string, value: string): OriginLine => ({
    path: `oidc.${key}`,
    value,
    origin: file.where(['oidc', key]),
  });
  const { issuer, clientId, url, roles, teams } = oidc;
  return [
    line('issuer', issuer),
    line('client_id', clientId),
    line('client_secret', '[secret]'),
    line('url', url),
    ...Object.entries(roles)
      .filter(([, groups]) => groups.length > 0)
      .map(([role, groups]) => ({
        ...line('roles', groups.join(', ')),
        path: `oidc.roles.${role}`,
      })),
    ...teams.map(({ name, members, leads }) => ({
      ...line('teams', [...leads, ...members].join(', ')),
      path: `oidc.teams.${name}`,
    })),
  ];
}
