/** The secret of the admin plane. It is not a key of the data plane, and no key is it (S9). */
import type { Secret } from '../../core/secret.ts';
import type { Store } from '../../store/store.ts';
import type { KeyRing } from './keys.ts';
import {
  makeToken,
  type RandomBytes,
  digestOf,
  requireUsableSecret,
  sameDigest,
} from './key-format.ts';
import { requireNotGuessable } from './key-format.ts';

const setting = 'admin_token_digest';
const tokenPrefix = 'gwadmin';

/** A secret that can be verified but not read back. */
export class TokenCheck {
  readonly #digest: Buffer;

  constructor(digest: Buffer) {
    this.#digest = digest;
  }

  static of(secret: Secret): TokenCheck {
    return new TokenCheck(digestOf(secret.reveal()));
  }

  /** In constant time. */
  verify(text: string): boolean {
    return this.verifyDigest(digestOf(text));
  }

  /** Whether this is still the digest of the secret. In constant time. */
  verifyDigest(digest: Buffer): boolean {
    return sameDigest(digest, this.#digest);
  }
}

export interface AdminTokenDeps {
  readonly store: Store;
  /** Loaded; a key of the data plane must not open the admin plane. */
  readonly keys: KeyRing;
  readonly random: RandomBytes;
  /** Called just before a token is created. */
  readonly onMake?: () => Promise<void>;
  /** Called just before the stored token is revoked because the literal is another one. */
  readonly onRevoke?: () => Promise<void>;
  /** MODEL_GATEWAY_ADMIN_TOKEN; replaces the stored token for good. */
  readonly literal?: Secret;
}

export interface AdminToken {
  readonly check: TokenCheck;
  /** Present if it was created now: to be printed once (S10). */
  readonly made?: Secret;
}

/**
 * The admin token of this data directory, created at the first start. A literal revokes a stored token: it may have been
 * replaced because others know it, and a start without the literal must not accept it again. Such a start makes another.
 * @throws Error when the literal is not usable, StoreError.
 */
export async function loadAdminToken(deps: AdminTokenDeps): Promise<AdminToken> {
  if (deps.literal !== undefined) {
    requireUsableSecret('MODEL_GATEWAY_ADMIN_TOKEN', deps.literal.reveal());
    requireNotGuessable('MODEL_GATEWAY_ADMIN_TOKEN', deps.literal.reveal());
    if (deps.keys.holds(deps.literal)) {
      throw new Error('MODEL_GATEWAY_ADMIN_TOKEN must not be a key of the data plane.');
    }
    const stored = await storedToken(deps.store);
    if (stored !== undefined && !stored.verify(deps.literal.reveal())) {
      await deps.onRevoke?.();
      await forgetAdminToken(deps.store);
    }
    return { check: TokenCheck.of(deps.literal) };
  }
  const stored = await storedToken(deps.store);
  if (stored !== undefined) return { check: stored };
  await deps.onMake?.();
  const made = makeRunToken(deps.random);
  await deps.store.settings.write(setting, digestOf(made.reveal()).toString('hex'));
  return { check: TokenCheck.of(made), made };
}

async function storedToken(store: Store): Promise<TokenCheck | undefined> {
  const digest = await store.settings.read(setting);
  return digest === undefined || digest === ''
    ? undefined
    : new TokenCheck(Buffer.from(digest, 'hex'));
}

/** Whether this store has an admin token already. @throws StoreError */
export async function hasAdminToken(store: Store): Promise<boolean> {
  return (await storedToken(store)) !== undefined;
}

/** Makes the stored token one that opens nothing; the next load makes another. @throws StoreError */
export async function forgetAdminToken(store: Store): Promise<void> {
  await store.settings.write(setting, '');
}

/** A fresh admin secret; also for the control token of one run (run.json). */
export function makeRunToken(random: RandomBytes): Secret {
  return makeToken(tokenPrefix, random);
}

// The secret of metrics scrapers, which can do nothing else: a monitoring system needs no token that can create
// keys. Without one, only the admin token opens the metrics.

export const metricsTokenVariable = 'MODEL_GATEWAY_METRICS_TOKEN';

interface MetricsTokenDeps {
  /** A key of the data plane must not open anything here (S9). */
  readonly keys: Pick<KeyRing, 'holds'>;
  readonly isAdminToken: (text: string) => boolean;
}

/** @throws Error when the secret cannot serve. */
export function metricsToken(secret: Secret, { keys, isAdminToken }: MetricsTokenDeps): TokenCheck {
  const text = secret.reveal();
  requireUsableSecret(metricsTokenVariable, text);
  requireNotGuessable(metricsTokenVariable, text);
  if (keys.holds(secret)) {
    throw new Error(`${metricsTokenVariable} must not be a key of the data plane.`);
  }
  if (isAdminToken(text)) {
    throw new Error(
      `${metricsTokenVariable} must not be the admin token: unset it, and the admin token opens /metrics.`,
    );
  }
  return TokenCheck.of(secret);
}
