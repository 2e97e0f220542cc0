/** Facts of the status as people read them: what is not a count is not written as one. */
import { count, percent } from '../../format/number.ts';
import { span } from '../../format/time.ts';
import { bytes } from '../models/bytes.ts';

/** A share of 0.6 is 60%, not 1. */
export function statusText(member: string, value: string | number | boolean): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string') return value.replaceAll(',', ', ');
  if (member.endsWith('_share')) return percent(value, 1);
  if (member.endsWith('_ms')) return span(value);
  return member.endsWith('_bytes') || member === 'body_memory' ? bytes(value) : count(value);
}

/** `memory_share` → `Memory share`; the unit of `loop_delay_ms` and `contents_bytes` is beside the number. */
export function statusName(member: string): string {
  const words = member.replace(/_ms$/, '').replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
