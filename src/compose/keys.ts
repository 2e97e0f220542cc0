/** Part of the composition root: keys, the policies that they share, and the log of who changed them. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { AuditLog, FileAnchor } from '../access/audit.ts';
import { KeyRing, type NewKey } from '../access/keys/keys.ts';
import { Pepper } from '../access/keys/seal-key.ts';
import { Policies } from '../access/policies.ts';
import { readSecretVariable } from '../config/config-file.ts';
import type { Settings } from '../config/settings.ts';
import { endpointScopes } from '../core/policy.ts';
import type { Log } from '../core/runtime.ts';
import { Secret } from '../core/secret.ts';
import { systemClock } from '../observe/runtime.ts';
import type { Store } from '../store/store.ts';

export interface AuthenticatorOptions {
  readonly store: Store;
  readonly settings: Pick<Settings, 'keys' | 'policies'> &
    Partial<Pick<Settings, 'dataDir' | 'storage'>>;
  readonly env: { readonly [name: string]: string | undefined };
  readonly log: Log;
  /** Whether other gateways use the store, too. */
  readonly shared?: boolean;
}

export interface Authenticator {
  readonly keys: KeyRing;
  readonly policies: Policies;
  readonly audit: AuditLog;
  /** Reads keys and policies, or what changed of them. @throws StoreError */
  load(): Promise<void>;
  /** The same in the background; changes that are announced meanwhile are read after it. Never throws. */
  reload(): void;
  /** Takes over what the config declares. @throws Error that names a key which cannot be taken. */
  declare(settings: AuthenticatorOptions['settings']): void;
  /** Notes that the config was read again because the file changed, or by a signal. Never rejects. */
  noteReload(outcome: {
    readonly applied: boolean;
    readonly problems: readonly string[];
  }): Promise<void>;
}

/**
 * Reads keys and policies.
 * @throws StoreError; Error when MODEL_GATEWAY_KEY, the pepper or a declared key cannot serve.
 */
export async function openAuthenticator(options: AuthenticatorOptions): Promise<Authenticator> {
  const authenticator = makeAuthenticator(options);
  await authenticator.load();
  return authenticator;
}

/**
 * Keys and policies before the store is read: those of the environment and the config are there.
 * @throws Error when MODEL_GATEWAY_KEY, the pepper or a declared key cannot serve.
 */
export function makeAuthenticator({
  store,
  settings,
  env,
  log,
  shared = false,
}: AuthenticatorOptions): Authenticator {
  const secret = readSecretVariable(env, 'MODEL_GATEWAY_PEPPER');
  const policies = new Policies(store.policies);
  const keys = new KeyRing({
    store,
    clock: systemClock,
    random: (count) => randomBytes(count),
    policies,
    ...(secret === undefined ? {} : { pepper: new Pepper(secret) }),
    log,
    shared,
  });
  const declare: Authenticator['declare'] = (wanted) => {
    keys.declare(wanted.keys);
    policies.declare(wanted.policies);
  };
  const load: Authenticator['load'] = async () => {
    await policies.load();
    await keys.load();
  };
  const literal = env['MODEL_GATEWAY_KEY'];
  if (literal !== undefined && literal !== '') {
    keys.addLiteralKey(new Secret(literal), {
      id: 'env',
      name: 'MODEL_GATEWAY_KEY',
      models: ['*'],
      endpoints: endpointScopes,
    });
  }
  declare(settings);
  const { dataDir, storage } = settings;
  const audit = new AuditLog({
    store: store.audit,
    clock: systemClock,
    log,
    // A store in memory leaves nothing behind, and begins a new log each time.
    ...(dataDir === undefined || storage?.database === 'memory'
      ? {}
      : { anchor: new FileAnchor(join(dataDir, 'audit.head')) }),
  });
  const noteReload: Authenticator['noteReload'] = async ({ applied, problems }) => {
    const done = { actor: { name: 'config' }, action: 'config.reload', subject: 'config' } as const;
    // The store may be down; the entry is in the log then.
    await audit.note({ ...done, after: { applied, problems } }).catch(() => undefined);
  };
  return { keys, policies, audit, load, reload: inBackground(load, log), declare, noteReload };
}

function inBackground(load: () => Promise<void>, log: Log): () => void {
  let wanted = false;
  let loading = false;
  const run = async (): Promise<void> => {
    loading = true;
    while (wanted) {
      wanted = false;
      await load().catch((error: unknown) => {
        // The store is read again from time to time.
        log.warn('keys_not_read', {
          reason: error instanceof Error ? error.message : String(error),
        });
      });
    }
    loading = false;
  };
  return () => {
    wanted = true;
    if (!loading) void run();
  };
}

const actor = { name: 'start' } as const;

/** The key of the first start, and its entry in the audit log in one transaction. @throws StoreError */
export function makeFirstKey(
  { keys, audit }: Authenticator,
  lost: string | undefined,
): Promise<NewKey | undefined> {
  return keys.ensureFirstKey(
    (change, { after }) =>
      audit.change(change, { actor, action: 'key.create', subject: `key:${after.record.id}` }),
    lost,
  );
}

/** The first key of a start that did not show it, unless it was used. @returns its id. @throws StoreError */
export async function revokeUnshownKey({
  keys,
  audit,
}: Authenticator): Promise<string | undefined> {
  const id = keys.unusedFirstKey();
  if (id === undefined) return undefined;
  await keys.revoke(id, (change) =>
    audit.change(change, { actor, action: 'key.revoke', subject: `key:${id}` }),
  );
  return id;
}

/** Before it happens: no token is made or revoked without an audit entry. @throws StoreError */
export function noteAdminToken(
  { audit }: Authenticator,
  action: 'admin_token.create' | 'admin_token.revoke',
): Promise<void> {
  return audit.note({ actor, action, subject: 'admin_token' });
}
