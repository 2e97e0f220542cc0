/** The audit log's chain (S24): each hash covers its entry and the hash before, so that a change shows. */
import { hash } from 'node:crypto';
import type { AuditEntry, AuditRecord } from './records.ts';

const beforeFirst = '';

/** The entry behind the last one of the chain. */
export function chained(entry: AuditEntry, last: AuditRecord | undefined): AuditRecord {
  const seq = (last?.seq ?? 0) + 1;
  return { ...entry, seq, hash: hashOf(entry, seq, last?.hash ?? beforeFirst) };
}

/**
 * The first `seq` at which a stretch of the log, in rising order, is not what was written: changed,
 * missing or in a wrong place. Undefined = nothing was tampered with.
 * @param before the record just before the stretch; absent = it begins with the first one.
 */
export function brokenAt(
  records: readonly AuditRecord[],
  before?: AuditRecord,
): number | undefined {
  let last = before;
  for (const record of records) {
    const { seq, hash: found, ...entry } = record;
    const expected = chained(entry, last);
    if (seq !== expected.seq || found !== expected.hash) return expected.seq;
    last = record;
  }
  return undefined;
}

function hashOf(entry: AuditEntry, seq: number, before: string): string {
  const { at, actor, ip, action, subject, before: was, after: is } = entry;
  const text = JSON.stringify([
    before,
    seq,
    at,
    actor,
    ip ?? null,
    action,
    subject,
    was ?? null,
    is ?? null,
  ]);
  return hash('sha256', text);
}
