/** Text without what looks like a key, for everything that keeps or tells what people wrote. */

/**
 * What each begins to read it takes, so that a text is read once (S22). A word begins behind an escape, too: in
 * JSON within JSON, as arguments of tools are, a key at the start of a line stands behind `\n`.
 */
const keyShapes =
  /(\b|\\[bfnrt]|\\u[\dA-Fa-f]{4}|%[\dA-Fa-f]{2})(?:(?:sk|csk|rk|gw|gwadmin|gsk|xai|tgp|pk|key|ghp|gho|ghs|github_pat|glpat|xox[abprs])[-_][\w*-]{6,}|(?:hf|npm|fw)_[A-Za-z0-9]{20,}|[0-9a-f]{32}\.[A-Za-z0-9]{16}\b|AIza[\w-]{10,}|A[KS]IA[A-Z0-9]{12,}|eyJ[\w-]{8,}(?:\.[\w-]*){0,2}|Bearer\s+[\w.~+/=-]+)|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?/g;

/**
 * Within a word, as in `MY_sk-proj-…` or `tokensk-ant-…`, where `task-manager` and `disk-<hash>` stand as well: only
 * whole forms of keys, and of these only what has letters of both cases and digits.
 */
const wholeKeys =
  /gw_[A-Za-z0-9]{8}_[A-Za-z0-9]{49}|gwadmin_[A-Za-z0-9]{49}|sk-(?:ant|proj|svcacct|admin)-[\w-]{20,}|sk-[A-Za-z0-9]{32,}|(?:gsk_|xai-)[A-Za-z0-9]{40,}|AIza[\w-]{35}|gh[opsu]_[A-Za-z0-9]{36}|github_pat_\w{22,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{20,}|(?:hf|npm)_[A-Za-z0-9]{30,}/g;

/**
 * The same for those without capitals (OpenRouter, Cerebras; DeepSeek, Qwen): a prefix that is no end of a word, or
 * no small letter before `sk-`, which parts `MY_sk-<hash>` from `disk-<hash>`.
 */
const smallKeys = /sk-or-v1-[\da-f]{64}|csk-[a-z\d]{48}|(?<!\p{Ll})sk-[a-z\d]{32,}/gu;

export const redacted = '[redacted]';

export function withoutKeys(text: string): string {
  return text
    .replace(keyShapes, `$1${redacted}`)
    .replace(wholeKeys, (found) => (isMixed(found) ? redacted : found))
    .replace(smallKeys, redacted);
}

function isMixed(text: string): boolean {
  return /[A-Z]/.test(text) && /[a-z]/.test(text) && /\d/.test(text);
}
