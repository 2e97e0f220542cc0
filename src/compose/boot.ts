/**
 * Part of the composition root: what a gateway reads from its store before it may serve. From a shared
 * store that is away at the start it reads it later, without a restart.
 */
import { randomBytes } from 'node:crypto';
import {
  forgetAdminToken,
  hasAdminToken,
  loadAdminToken,
  type AdminToken,
  type TokenCheck,
} from '../access/keys/admin-token.ts';
import { estimatedBits, goodBits, howToMake } from '../access/keys/key-format.ts';
import { loadSealKey } from '../access/keys/seal-key.ts';
import type { Log } from '../core/runtime.ts';
import { type Sealer, Secret, createSealer } from '../core/secret.ts';
import { systemClock } from '../observe/runtime.ts';
import { makeFirstKey, noteAdminToken, revokeUnshownKey, type Authenticator } from './keys.ts';
import type { OpenedStorage } from './storage.ts';
import { mayPass, StoreError } from '../store/store-error.ts';

export interface BootOptions extends OpenedStorage {
  readonly authenticator: Authenticator;
  readonly env: { readonly [name: string]: string | undefined };
  readonly log: Log;
}

/** Secrets that this start made; shown once. */
export interface Made {
  readonly key?: string;
  readonly adminToken?: string;
}

const random = (count: number): Uint8Array => randomBytes(count);
const againMs = 5000;
/** A setting of the store: since when secrets wait to be shown, wall ms; empty = they were. */
const unshownSetting = 'secrets_unshown_since';
/** Another gateway on a shared store may be about to show what it made. */
const showMs = 60_000;

export class Boot {
  readonly #options: BootOptions;
  #admin: AdminToken | undefined;
  #sealer: Sealer | undefined;
  #made: Made = {};
  #unshown = false;
  #timer: NodeJS.Timeout | undefined;
  #running = false;
  #closed = false;

  constructor(options: BootOptions) {
    this.#options = options;
  }

  /** Whether calls may be served. */
  get done(): boolean {
    return this.#sealer !== undefined;
  }

  /**
   * The check of the admin token. It refuses everything until the token is known.
   * @throws StoreError `unavailable` until then: a valid token must not be refused as an invalid one.
   */
  readonly adminToken: Pick<TokenCheck, 'verify' | 'verifyDigest'> = {
    verify: (text) => this.#requireAdmin().check.verify(text),
    verifyDigest: (digest) => this.#requireAdmin().check.verifyDigest(digest),
  };

  /** No call needs it before the boot is done. */
  readonly sealer: Sealer = {
    seal: (record) => this.#requireSealer().seal(record),
    open: (sealed) => this.#requireSealer().open(sealed),
    digest: (text) => this.#requireSealer().digest(text),
    key: () => this.#requireSealer().key(),
  };

  /**
   * Reads everything, or begins to wait for a shared store that is unavailable or locked.
   * @returns the secrets that this start created, even while it waits for the rest, since they cannot be shown
   * later.
   * @throws StoreError, Error when a secret of the environment is not usable.
   */
  async begin(): Promise<Made> {
    const { shared, log, env } = this.#options;
    warnOfWeak(env, log);
    try {
      await this.#run({ mayMake: true });
    } catch (error) {
      if (shared === undefined || !mayPass(error)) throw error;
      log.error('waiting_for_store', { reason: error.message });
      shared.server.onUp(() => this.#later());
      if (shared.server.up) this.#later();
    }
    const made = this.#made;
    this.#made = {};
    return made;
  }

  /** @throws StoreError */
  async secretsShown(): Promise<void> {
    if (!this.#unshown) return;
    await this.#options.store.settings.write(unshownSetting, '');
    this.#unshown = false;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #later(): void {
    if (this.done || this.#running || this.#closed) return;
    this.#running = true;
    const { log } = this.#options;
    // Secrets created now could not be shown.
    this.#run({ mayMake: false })
      .then(
        () => log.info('store_loaded', {}),
        (error: unknown) => {
          const reason = error instanceof Error ? error.message : String(error);
          log.error('store_not_loaded', { reason });
          if (!this.#closed) this.#timer = setTimeout(() => this.#later(), againMs);
        },
      )
      .finally(() => {
        this.#running = false;
      });
  }

  async #run({ mayMake }: { readonly mayMake: boolean }): Promise<void> {
    const { authenticator, shared } = this.#options;
    await authenticator.load();
    if (authenticator.keys.pepperProblem !== undefined)
      throw new Error(authenticator.keys.pepperProblem);
    const make = (): Promise<void> => this.#make(mayMake);
    await (shared === undefined ? make() : shared.inTurn(make));
    shared?.watch(() => authenticator.reload());
  }

  /** One instance at a time: there is one first key, one admin token and one seal for all. */
  async #make(mayMake: boolean): Promise<void> {
    const { authenticator, store, shared } = this.#options;
    // Another one may have made it while this one waited for its turn.
    if (shared !== undefined) await authenticator.load();
    await authenticator.audit.checkEnd();
    const lostKey = mayMake ? await this.#discardUnshown() : undefined;
    if (mayMake && (await this.#willMake(lostKey))) {
      // Before they are made: a gateway that dies before it shows them leaves this behind.
      await store.settings.write(unshownSetting, String(systemClock.wall()));
      this.#unshown = true;
    }
    const first = mayMake ? await makeFirstKey(authenticator, lostKey) : undefined;
    if (first !== undefined) this.#made = { key: first.key.reveal() };
    this.#admin = await this.#loadAdmin(mayMake);
    const adminToken = this.#admin?.made;
    if (adminToken !== undefined) {
      this.#made = { ...this.#made, adminToken: adminToken.reveal() };
    }
    this.#sealer = createSealer(await loadSealKey(store, random));
  }

  /**
   * A key and a token that an earlier start made and did not live to show count as never made.
   * @returns the id of the key that was revoked for it
   */
  async #discardUnshown(): Promise<string | undefined> {
    const { authenticator, store, shared } = this.#options;
    const since = await store.settings.read(unshownSetting);
    if (since === undefined || since === '') return undefined;
    if (shared !== undefined && systemClock.wall() - Number(since) < showMs) return undefined;
    await forgetAdminToken(store);
    return revokeUnshownKey(authenticator);
  }

  async #willMake(lostKey: string | undefined): Promise<boolean> {
    const { authenticator, store, env } = this.#options;
    const tokenIsSet = (env['MODEL_GATEWAY_ADMIN_TOKEN'] ?? '') !== '';
    return (
      authenticator.keys.wantsFirstKey(lostKey) || (!tokenIsSet && !(await hasAdminToken(store)))
    );
  }

  async #loadAdmin(mayMake: boolean): Promise<AdminToken | undefined> {
    const { authenticator, store, env } = this.#options;
    const text = env['MODEL_GATEWAY_ADMIN_TOKEN'];
    const literal = text === undefined || text === '' ? {} : { literal: new Secret(text) };
    const mayLoad = mayMake || 'literal' in literal || (await hasAdminToken(store));
    return mayLoad
      ? loadAdminToken({
          store,
          keys: authenticator.keys,
          random,
          onMake: () => noteAdminToken(authenticator, 'admin_token.create'),
          onRevoke: () => noteAdminToken(authenticator, 'admin_token.revoke'),
          ...literal,
        })
      : undefined;
  }

  #requireAdmin(): AdminToken {
    return this.#admin ?? notYetRead();
  }

  #requireSealer(): Sealer {
    return this.#sealer ?? notYetRead();
  }
}

/** Logs weak secrets. Guessable ones are refused by `requireNotGuessable`. */
function warnOfWeak(env: BootOptions['env'], log: Log): void {
  for (const variable of [
    'MODEL_GATEWAY_ADMIN_TOKEN',
    'MODEL_GATEWAY_METRICS_TOKEN',
    'MODEL_GATEWAY_KEY',
  ]) {
    const secret = env[variable] ?? '';
    if (secret !== '' && estimatedBits(secret) < goodBits) {
      log.warn('weak_secret', { variable, hint: howToMake });
    }
  }
}

function notYetRead(): never {
  throw new StoreError('unavailable', 'The store was not read yet.');
}
