/** The table of the budgets: what must be reached, what was, and what others make of the same workload. */
import { cpuPerRequest, cpuPerUnit, type Figure, type Results, type Summary } from './analysis.ts';
import { direct } from './subject.ts';
import { budgetRow, range, table, type BudgetForm } from './tables.ts';
import type { Budget, Workload } from './workloads.ts';

/** The subject that the budgets are for, and the floor of their ratios. */
export const measured = 'gateway';
export const floor = 'nginx';

export interface BudgetInput {
  readonly workloads: readonly Workload[];
  readonly results: Results;
}

/** One question with a figure for each subject. */
interface Row {
  readonly what: string;
  readonly form: Omit<BudgetForm, 'budget'> & { readonly budget?: Budget };
  /** Undefined for a subject that has no result. */
  of(subject: string): Summary | undefined;
}

/** @param more rows of other figures, of the gateway only */
export function budgetLines(input: BudgetInput, more: readonly string[][]): string[] {
  const rows = input.workloads.flatMap((workload) => rowsOf(input.results, workload));
  const others = othersIn(input);
  const head = ['what', 'must', 'aim', 'measured: median (min–max)', 'must reached', ...others];
  return [
    ...table(head, [
      ...rows.map((row) => [
        ...(row.form.budget === undefined
          ? [row.what, '–', '–', shown(row, measured), '–']
          : budgetRow(row.what, row.of(measured), { ...row.form, budget: row.form.budget })),
        ...others.map((name) => shown(row, name)),
      ]),
      ...more.map((cells) => [...cells, ...others.map(() => '–')]),
    ]),
    '',
    '× is the ratio to nginx, paired within a round; differences under 15 % are noise.',
  ];
}

/** Those that are between like the gateway does, but for the floor itself. */
function othersIn({ workloads, results }: BudgetInput): string[] {
  const names = workloads
    .filter(({ kind }) => kind !== 'added')
    .flatMap(({ id }) => results.subjectsOf(id));
  return [...new Set(names)].filter((name) => ![measured, floor, direct.name].includes(name));
}

function shown(row: Row, name: string): string {
  const summary = row.of(name);
  return summary === undefined ? '–' : range(summary, row.form.digits, row.form.unit);
}

function rowsOf(results: Results, workload: Workload): Row[] {
  switch (workload.kind) {
    case 'cpu':
      return [cpuRow(results, workload)];
    case 'added':
      return [addedRow(results, workload)];
    case 'latency':
      return [
        ...(workload.p50 === undefined
          ? []
          : [
              latencyRow(results, workload, {
                name: 'p50',
                figure: (m) => m.p50Ms,
                budget: workload.p50,
              }),
            ]),
        latencyRow(results, workload, {
          name: 'p99',
          figure: (m) => m.p99Ms,
          budget: workload.p99,
        }),
      ];
    case 'memory': {
      const { title, budget, id } = workload;
      const of = (name: string): Summary | undefined =>
        results.summary(id, name, (m) => m.kbPerStream);
      return [{ what: title, form: { budget, unit: ' KB', digits: 0 }, of }];
    }
    case 'delay':
      return [];
    default:
      return workload satisfies never;
  }
}

function cpuRow(results: Results, workload: Extract<Workload, { readonly kind: 'cpu' }>): Row {
  const { id, title, unit, budget } = workload;
  const base = { workload: workload.floor, subject: floor };
  return {
    what: `${title}, CPU per ${unit}`,
    form: { unit: ' ×', digits: 2, ...(budget === undefined ? {} : { budget }) },
    of: (subject) =>
      results.paired({ workload: id, subject }, base, cpuPerUnit(workload), (a, b) => a / b),
  };
}

interface Percentile {
  readonly name: string;
  readonly figure: Figure;
  readonly budget: Budget;
}

function latencyRow(results: Results, { id, title }: Workload, each: Percentile): Row {
  const base = { workload: id, subject: direct.name };
  return {
    what: `${title}, ${each.name}`,
    form: { budget: each.budget, unit: ' ms', digits: 2 },
    of: (subject) => results.paired({ workload: id, subject }, base, each.figure, (a, b) => a - b),
  };
}

function addedRow(results: Results, workload: Extract<Workload, { readonly kind: 'added' }>): Row {
  const { id, title } = workload;
  const limited = { workload: id, subject: results.inRole(id, 'limited') ?? '' };
  const plain = { workload: id, subject: results.inRole(id, 'plain') ?? '' };
  return {
    what: `${title}, CPU per request`,
    form: { budget: addedBudget(results, workload), unit: ' µs', digits: 1 },
    of: (subject) =>
      subject === measured
        ? results.paired(limited, plain, cpuPerRequest, (a, b) => a - b)
        : undefined,
  };
}

/** With what is allowed besides, as it was measured beside it. */
function addedBudget(
  results: Results,
  { id, budget }: Extract<Workload, { readonly kind: 'added' }>,
): Budget {
  const allowance = results.inRole(id, 'allowance');
  const besides =
    allowance === undefined ? undefined : results.summary(id, allowance, cpuPerRequest);
  const plus = Math.round(besides?.median ?? 0);
  return { must: budget.must + plus, aim: budget.aim + plus };
}
