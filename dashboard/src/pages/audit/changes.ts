/** What an entry changed: the members that differ before and after. */
import type { State } from './api.ts';

export interface MemberChange {
  readonly member: string;
  /** As text; undefined: it was not there. */
  readonly before: string | undefined;
  readonly after: string | undefined;
}

export function changesOf(before: State, after: State): readonly MemberChange[] {
  const members = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  return [...members]
    .map((member) => ({
      member,
      before: textOf(before?.[member]),
      after: textOf(after?.[member]),
    }))
    .filter((change) => change.before !== change.after);
}

/** `team: – → red, rpm: 5 → 6`; of what was made or taken away the values alone. */
export function changesText(before: State, after: State): string {
  const isChange = before !== null && after !== null;
  return changesOf(before, after)
    .map(({ member, before: old, after: now }) =>
      isChange ? `${member}: ${old ?? '–'} → ${now ?? '–'}` : `${member}: ${now ?? old ?? '–'}`,
    )
    .join(', ');
}

/** Absent, null and an empty list say the same: it is not set. */
function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value)) {
    return value.length === 0 ? undefined : value.map((each) => textOf(each) ?? '–').join(', ');
  }
  if (typeof value !== 'object') return String(value);
  // A limit reads `requests 100`, a budget `20 month UTC`.
  return Object.values(value)
    .flatMap((each) => textOf(each) ?? [])
    .join(' ');
}
