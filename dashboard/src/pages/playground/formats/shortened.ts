/** A request to be read by people. */
import type { JsonRecord } from './request.ts';

const maxText = 2_000;

/** The same with base64 data cut: pictures are megabytes. */
export function shortened(record: JsonRecord): JsonRecord {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, cut(value)]));
}

function cut(value: unknown): unknown {
  if (
    typeof value === 'string' &&
    value.length > maxText &&
    /^(data:)?[\w/;,+=:.-]+$/.test(value)
  ) {
    return `${value.slice(0, 60)}… (${value.length} characters)`;
  }
  if (Array.isArray(value)) return value.map((item: unknown) => cut(item));
  if (typeof value !== 'object' || value === null) return value;
  return shortened(value as JsonRecord);
}
