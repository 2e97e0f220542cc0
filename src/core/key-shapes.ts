/** Text without what looks like a key, for everything that keeps or tells what people wrote. */

/**
 * What each begins to read it takes, so that a text is read once (S22). A word begins behind an escape, too: in
 * JSON within JSON, as arguments of tools are, a key at the start of a line stands behind `\n`.
 */
const keyShapes =
  /(\b|\\[bfnrt]|\\u[\dA-Fa-f]{4}|%[\dA-Fa-f]{2})(?:(?:sk|rk|gw|gwadmin|gsk|xai|pk|key|ghp|gho|ghs|github_pat|glpat|xox[abprs])[-_][\w*-]{6,}|(?:hf|npm)_[A-Za-z0-9]{20,}|AIza[\w-]{10,}|A[KS]IA[A-Z0-9]{12,}|eyJ[\w-]{8,}(?:\.[\w-]*){0,2}|Bearer\s+[\w.~+/=-]+)|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?/g;

export const redacted = '[redacted]';

export function withoutKeys(text: string): string {
  return text.replace(keyShapes, `$1${redacted}`);
}
