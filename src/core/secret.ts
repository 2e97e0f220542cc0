/** Values and texts that must not be printed: secrets, and texts that look like keys. */
import { inspect } from 'node:util';

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
 * Keys at the beginning of a word. No alternative backtracks, so that each text is read once (S22). A word begins behind
 * an escape, too: in JSON within JSON, such as arguments of tools, a key at the start of a line stands behind `\n`.
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
