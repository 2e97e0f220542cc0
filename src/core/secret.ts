/** Values and texts that must not be printed: secrets, and texts that look like keys. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { inspect } from 'node:util';
import { tryParseObject } from '../json/parse.ts';
import type { JsonObject } from '../json/value.ts';

/** A value that cannot be printed: in logs, JSON, templates and the inspector it reads `[secret]`. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The real value; call it only where it goes into a header or a comparison. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  [inspect.custom](): string {
    return '[secret]';
  }
}

/**
 * Keys at the beginning of a word. No alternative backtracks, so that each text is read once (S22). A word begins after
 * an escape, too: in JSON within JSON, such as arguments of tools, a key at the start of a line is after `\n`.
 */
const keyShapes =
  /(\b|\\[bfnrt]|\\u[\dA-Fa-f]{4}|%[\dA-Fa-f]{2})(?:(?:sk|csk|rk|gw|gwadmin|gsk|xai|tgp|pk|key|ghp|gho|ghs|github_pat|glpat|xox[abprs])[-_][\w*-]{6,}|(?:hf|npm|fw)_[A-Za-z0-9]{20,}|[0-9a-f]{32}\.[A-Za-z0-9]{16}\b|AIza[\w-]{10,}|A[KS]IA[A-Z0-9]{12,}|eyJ[\w-]{8,}(?:\.[\w-]*){0,2}|Bearer\s+[\w.~+/=-]+)|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?/g;

/**
 * Keys inside of a word, such as `MY_sk-proj-…` or `tokensk-ant-…`. Words such as `task-manager` and `disk-<hash>` must
 * not match: only whole forms of keys count, and only with letters of both cases and digits.
 */
const wholeKeys =
  /gw_[A-Za-z0-9]{8}_[A-Za-z0-9]{49}|gwadmin_[A-Za-z0-9]{49}|sk-(?:ant|proj|svcacct|admin)-[\w-]{20,}|sk-[A-Za-z0-9]{32,}|(?:gsk_|xai-)[A-Za-z0-9]{40,}|AIza[\w-]{35}|gh[opsu]_[A-Za-z0-9]{36}|github_pat_\w{22,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{20,}|(?:hf|npm)_[A-Za-z0-9]{30,}/g;

/**
 * The same for keys without capitals (OpenRouter, Cerebras; DeepSeek, Qwen). `sk-` must not follow a small letter:
 * `MY_sk-<hash>` is a key, `disk-<hash>` is not.
 */
const smallKeys = /sk-or-v1-[\da-f]{64}|csk-[a-z\d]{48}|(?<!\p{Ll})sk-[a-z\d]{32,}/gu;

const redacted = '[redacted]';

/** The text with everything that looks like a key of a vendor or of the gateway replaced by `[redacted]`. */
export function withoutKeys(text: string): string {
  return text
    .replace(keyShapes, `$1${redacted}`)
    .replace(wholeKeys, (found) =>
      /[A-Z]/.test(found) && /[a-z]/.test(found) && /\d/.test(found) ? redacted : found,
    )
    .replace(smallKeys, redacted);
}

// Records that travel through clients and come back: only the gateway can make one, and a changed one
// is noticed. A record is not a secret; clients may read it.

/** Seals records and digests texts, with a key that all gateways of one store share. */
export interface Sealer {
  /** The same text for the same record each time: it is in prompts that are cached. */
  seal(record: JsonObject): string;
  /** Undefined for what this gateway did not seal, or not like this. */
  open(sealed: string): JsonObject | undefined;
  /** A short keyed digest: 22 characters of base64url. */
  digest(text: string): string;
  /** 32 bytes, for another thread of this process. */
  key(): Uint8Array;
}

const sealPrefix = 'gw1.';
const macBytes = 16;

/** Whether a text has the form of a sealed record. The seal is not checked. */
export function isSealed(text: string | undefined): boolean {
  return text?.startsWith(sealPrefix) === true;
}

/** @param key 32 random bytes. */
export function createSealer(key: Uint8Array): Sealer {
  // The purpose of the digest comes first, so that a digest of a text is never a valid seal.
  const mac = (purpose: string, text: string): Buffer =>
    createHmac('sha256', key).update(`${purpose}\n${text}`).digest().subarray(0, macBytes);
  return {
    seal: (record) => {
      const payload = Buffer.from(JSON.stringify(record)).toString('base64url');
      return `${sealPrefix}${payload}.${mac('seal', payload).toString('base64url')}`;
    },
    open: (sealed) => {
      if (!isSealed(sealed)) return undefined;
      const dot = sealed.indexOf('.', sealPrefix.length);
      if (dot === -1) return undefined;
      const payload = sealed.slice(sealPrefix.length, dot);
      const given = Buffer.from(sealed.slice(dot + 1), 'base64url');
      const expected = mac('seal', payload);
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
      return tryParseObject(Buffer.from(payload, 'base64url').toString('utf8'));
    },
    key: () => key,
    digest: (text) => mac('digest', text).toString('base64url'),
  };
}
