/** Names of models at Bedrock: ids, inference profiles and ARNs (wire/bedrock.md §3). */

/** Where an inference profile may run its calls. */
const profilePrefix = /^(?:us|eu|apac|global|us-gov|au|jp|ca)\./;
const maxLength = 2048;

/** An id is one segment of a path, however it is written. */
export function isModelId(name: string): boolean {
  // oxlint-disable-next-line no-control-regex
  return name.length <= maxLength && !/^\.{0,2}$|[\u0000-\u001f\u007f]/.test(name);
}

/** The id without the regions of a profile: `us.anthropic.claude-…` → `anthropic.claude-…`; of an ARN its last part. */
export function baseModelId(id: string): string {
  const own = id.startsWith('arn:') ? id.slice(id.lastIndexOf('/') + 1) : id;
  return own.replace(profilePrefix, '');
}

/** The maker's name of a model: `us.anthropic.claude-sonnet-4-5-20250929-v1:0` → `claude-sonnet-4-5-20250929`. */
export function makersName(id: string): string {
  const base = baseModelId(id)
    .replace(/:\d{1,6}$/, '')
    .replace(/-v\d{1,3}$/, '');
  return base.replace(/^anthropic\./, '');
}

export function isClaude(model: string): boolean {
  return /(?:^|\.|\/)(?:anthropic\.)?claude/i.test(model);
}
