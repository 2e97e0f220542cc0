/** The changes that a new text of the config file would make, and the access that it would close. */
import { isDeepStrictEqual } from 'node:util';
import { addressText, isLoopback, pathText } from '../errors.ts';
import { hasReference } from '../config-file.ts';
import type { Referred } from '../referred.ts';
import type { OriginLine, Settings } from '../settings.ts';
import { isHidden } from './fields.ts';
import { readLeaves } from './yaml-leaves.ts';

/** A setting that differs. A secret reads `[secret]`. */
export interface ConfigChange {
  readonly path: string;
  /** Null: not set. */
  readonly before: string | null;
  readonly after: string | null;
  /** `flag --listen`, `env MODEL_GATEWAY_LISTEN`: what overrides the file; null: the file decides. */
  readonly overriddenBy: string | null;
}

interface Effective {
  readonly origins: readonly OriginLine[];
}

interface Texts {
  /** Settings of the file on disk. */
  readonly before: string;
  /** Settings of the wanted text. */
  readonly after: string;
  /** The values of the references in the wanted text, which are not shown. */
  readonly referred: Referred;
}

/**
 * The effective settings that differ, and the values of the file that differ without one: a secret, or a value that a
 * flag or a variable overrides.
 */
export function changesBetween(
  running: Effective,
  wanted: Effective,
  texts: Texts,
): readonly ConfigChange[] {
  const before = valuesOf(running, texts.before, texts.referred);
  const after = valuesOf(wanted, texts.after, texts.referred);
  const effective = differences(before, after).map((each) => ({ ...each, overriddenBy: null }));
  const known = effective.map(({ path }) => path);
  const outer = new Map(
    wanted.origins
      .filter(({ origin }) => isOuter(origin))
      .map(({ path, origin }) => [path, origin]),
  );
  const others = differences(valuesIn(texts.before), valuesIn(texts.after))
    .filter(({ path }) => !known.some((each) => isWithin(each, path) || isWithin(path, each)))
    .map((each) => ({ ...each, overriddenBy: outer.get(each.path) ?? null }));
  return [...effective, ...others];
}

interface Value {
  readonly shown: string;
  readonly real: string;
}

/** A value with a reference is shown as the file has it. What follows from one, such as a folder below it, is scrubbed. */
function valuesOf(
  { origins }: Effective,
  text: string,
  referred: Referred,
): ReadonlyMap<string, Value> {
  const written = [...valuesIn(text)].filter(([, { real }]) => hasReference(real));
  return new Map(
    origins.map(({ path, value, origin }) => {
      const own = isOuter(origin) ? [] : written.filter(([at]) => isWithin(at, path));
      const texts = own.map(([, { shown }]) => shown).join(', ');
      return [path, { shown: own.length > 0 ? texts : referred.scrub(value), real: value }];
    }),
  );
}

function valuesIn(text: string): ReadonlyMap<string, Value> {
  return new Map(
    readLeaves(text).leaves.map(({ path, value }) => {
      const real = String(value);
      return [pathText(path), { shown: isHidden(path, value) ? '[secret]' : real, real }];
    }),
  );
}

function differences(
  before: ReadonlyMap<string, Value>,
  after: ReadonlyMap<string, Value>,
): readonly Omit<ConfigChange, 'overriddenBy'>[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((path) => before.get(path)?.real !== after.get(path)?.real)
    .map((path) => ({
      path,
      before: before.get(path)?.shown ?? null,
      after: after.get(path)?.shown ?? null,
    }));
}

function isOuter(origin: string): boolean {
  return /^(?:flag|env) /.test(origin);
}

function isWithin(path: string, whole: string): boolean {
  return path === whole || path.startsWith(`${whole}.`) || path.startsWith(`${whole}[`);
}

/** Changes that could close the dashboard to its users, or remove access; one sentence each. */
export function consequences(running: Settings, wanted: Settings): readonly string[] {
  return [...adminPlane(running, wanted), ...signIn(running, wanted), ...data(running, wanted)];
}

function adminPlane(running: Settings, wanted: Settings): readonly string[] {
  const [before, after] = [addressText(running.adminListen), addressText(wanted.adminListen)];
  const lines: string[] = [];
  if (before !== after) {
    const closed = isLoopback(wanted.adminListen.host) && !isLoopback(running.adminListen.host);
    const reach = closed ? ', which only programs of that machine can reach' : '';
    lines.push(
      `admin_listen: after the next start this dashboard is at ${after} and no longer at ${before}${reach}.`,
    );
  }
  if ((running.adminTls === undefined) !== (wanted.adminTls === undefined)) {
    const scheme = wanted.adminTls === undefined ? 'http' : 'https';
    lines.push(`admin_tls: after the next start this dashboard is reached by ${scheme}:// only.`);
  }
  if (running.adminTls?.clientCa === undefined && wanted.adminTls?.clientCa !== undefined) {
    lines.push(
      'admin_tls.client_ca: after the next start only browsers with a client certificate reach this dashboard.',
    );
  }
  return lines;
}

function signIn(running: Settings, wanted: Settings): readonly string[] {
  if (running.oidc === undefined || isDeepStrictEqual(running.oidc, wanted.oidc)) return [];
  if (wanted.oidc === undefined) {
    return ['oidc: after the next start the admin token is the only way to sign in.'];
  }
  const lost = running.oidc.roles.owner.filter(
    (group) => wanted.oidc?.roles.owner.includes(group) !== true,
  );
  return lost.length === 0
    ? []
    : [
        `oidc.roles.owner: after the next start the people of ${lost.join(', ')} are no owners. The admin token remains an owner's.`,
      ];
}

function data(running: Settings, wanted: Settings): readonly string[] {
  const keys = running.keys.filter(({ id }) => !wanted.keys.some((each) => each.id === id));
  const moved = running.dataDir !== wanted.dataDir || isOtherStore(running, wanted);
  return [
    ...(keys.length === 0
      ? []
      : [`keys: ${keys.map(({ id }) => id).join(', ')} will be revoked at once.`]),
    ...(moved
      ? [
          'storage, data_dir: after the next start the gateway has the keys, the calls and the admin token of another store.',
        ]
      : []),
  ];
}

function isOtherStore({ storage: before }: Settings, { storage: after }: Settings): boolean {
  if (before.database !== 'postgres' || after.database !== 'postgres') {
    return before.database !== after.database;
  }
  return before.postgres.shown !== after.postgres.shown;
}
