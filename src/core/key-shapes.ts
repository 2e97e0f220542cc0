/** Text without what looks like a key, for everything that keeps or tells what people wrote. */

/** What each begins to read it takes, so that a text is read once (S22). */
const keyShapes =
  /\b(?:sk|rk|gw|gsk|xai|pk|key|ghp|gho|ghs|github_pat|glpat|xox[abprs])[-_][\w*-]{6,}|\bAIza[\w-]{10,}|\bA[KS]IA[A-Z0-9]{12,}|\beyJ[\w-]{8,}(?:\.[\w-]*){0,2}|\bBearer\s+[\w.~+/=-]+|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?/g;

export const redacted = '[redacted]';

export function withoutKeys(text: string): string {
  return text.replace(keyShapes, redacted);
}
