/** The forms that figures take in the report. */
import type { Summary } from './analysis.ts';

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [];
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)];
}

export interface BudgetForm {
  readonly budget: { readonly must: number; readonly aim?: number };
  readonly unit: string;
  readonly digits: number;
}

export function budgetRow(what: string, summary: Summary | undefined, form: BudgetForm): string[] {
  const { must, aim } = form.budget;
  const limit = (value: number | undefined): string =>
    value === undefined ? '–' : `≤ ${value}${form.unit}`;
  const verdict = summary === undefined ? '–' : summary.median <= must ? 'yes' : '**no**';
  return [what, limit(must), limit(aim), range(summary, form.digits, form.unit), verdict];
}

export function one(value: number): Summary {
  return { median: value, min: value, max: value, count: 1 };
}

export function range(summary: Summary | undefined, digits: number, unit: string): string {
  if (summary === undefined) return 'no result';
  const [median, min, max] = [summary.median, summary.min, summary.max].map((value) =>
    value.toFixed(digits),
  );
  return summary.count === 1 ? `${median}${unit}` : `${median}${unit} (${min}–${max})`;
}
