/** Writes the figures as Markdown. */
import {
  summarize,
  coreShare,
  cpuPerRequest,
  cpuPerUnit,
  unitsOf,
  type Figure,
  type Results,
  type Summary,
} from './analysis.ts';
import type { EngineFigures } from './engine.ts';
import { engineBudgets, engineLines } from './engine-report.ts';
import { percent } from './machine.ts';
import type { StartTimes } from './startup.ts';
import { direct, type Subject } from './subject.ts';
import { budgetRow, one, range, table, type BudgetForm } from './tables.ts';
import {
  installBudgetMb,
  modelStartBudgetS,
  startBudget,
  type Budget,
  type Workload,
} from './workloads.ts';

export interface ReportInput {
  readonly command: string;
  readonly method: string;
  readonly date: Date;
  readonly machine: string;
  readonly commit: string;
  readonly subjects: readonly Subject[];
  /** What could not be measured, and why. */
  readonly missing: readonly string[];
  readonly warnings: readonly string[];
  readonly workloads: readonly Workload[];
  readonly results: Results;
  readonly starts: readonly { readonly model: string; readonly times: StartTimes }[];
  readonly engines: readonly EngineFigures[];
  readonly installMb: number | undefined;
}

/** The measured subject of the budget table. */
const measured = 'gateway';
const floor = 'nginx';

export function renderReport(input: ReportInput): string {
  const versions = input.subjects.map((subject) => `${subject.name} ${subject.version}`).join(', ');
  return [
    '# Benchmark results',
    '',
    `Written by \`${input.command}\` on ${input.date.toISOString().slice(0, 10)}; the method is in [README.md](README.md).`,
    '',
    `- Machine: ${input.machine}`,
    `- Measured: ${versions === '' ? 'nothing' : versions}; source at ${input.commit}`,
    `- ${input.method}`,
    ...input.missing.map((line) => `- Left out: ${line}`),
    ...section(
      'Warnings',
      input.warnings.map((line) => `- ${line}`),
    ),
    ...section('Failures', failureLines(input)),
    ...section('Budgets', budgetTable(input)),
    ...section('CPU', cpuTable(input)),
    ...section('Latency at a constant rate', latencyTable(input)),
    ...section('Memory', memoryTable(input)),
    ...section('The embedded engine', engineLines(input.engines)),
    ...section('Load and mock alone', capacityLines(input)),
    '',
  ].join('\n');
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', `## ${title}`, '', ...lines];
}

function failureLines({ results }: ReportInput): string[] {
  return results.failed().map(({ round, workload, subject, measurement }) => {
    const reasons = measurement.reasons.join('; ').replaceAll(/\s+/g, ' ');
    return `- round ${round}, ${workload}, ${subject}: ${measurement.failures} failures, no result: ${reasons}`;
  });
}

/** One row a budget: the ratio to nginx, or the absolute figure where the budget is one. */
function budgetTable(input: ReportInput): string[] {
  const rows = [
    ...input.workloads.flatMap((workload) => workloadBudgets(input, workload)),
    ...startRows(input),
    ...input.engines.flatMap(engineBudgets),
    budgetRow('install size', input.installMb === undefined ? undefined : one(input.installMb), {
      budget: { must: installBudgetMb },
      unit: ' MB',
      digits: 0,
    }),
  ];
  const head = ['what', 'must', 'aim', 'measured: median (min–max)', 'must reached'];
  return [
    ...table(head, rows),
    '',
    '× is the ratio to nginx, paired within a round; differences under 15 % are noise.',
  ];
}

function workloadBudgets({ results, subjects }: ReportInput, workload: Workload): string[][] {
  const own = { workload: workload.id, subject: measured };
  switch (workload.kind) {
    case 'cpu': {
      const base = { workload: workload.floor, subject: floor };
      const ratio = results.paired(own, base, cpuPerUnit(workload), (a, b) => a / b);
      const what = `${workload.title}, CPU per ${workload.unit}`;
      return [budgetRow(what, ratio, { budget: workload.budget, unit: ' ×', digits: 2 })];
    }
    case 'added': {
      const limitedOne = subjects.find(({ only, beside }) => only === workload.id && beside);
      if (limitedOne?.beside === undefined) return [];
      const limited = { workload: workload.id, subject: limitedOne.name };
      const plain = { workload: workload.id, subject: limitedOne.beside.name };
      const added = results.paired(limited, plain, cpuPerRequest, (a, b) => a - b);
      const what = `${workload.title}, CPU per request`;
      return [budgetRow(what, added, addedBudget(results, workload, limitedOne))];
    }
    case 'latency': {
      const base = { workload: workload.id, subject: direct.name };
      const row = (name: string, figure: Figure, budget: Budget): string[] => {
        const added = results.paired(own, base, figure, (a, b) => a - b);
        return budgetRow(`${workload.title}, ${name}`, added, { budget, unit: ' ms', digits: 2 });
      };
      return [row('p50', (m) => m.p50Ms, workload.p50), row('p99', (m) => m.p99Ms, workload.p99)];
    }
    case 'memory': {
      const each = results.summary(workload.id, measured, (m) => m.kbPerStream);
      return [budgetRow(workload.title, each, { budget: workload.budget, unit: ' KB', digits: 0 })];
    }
    default:
      return workload satisfies never;
  }
}

/** With what the subject is allowed besides, as it was measured beside it. */
function addedBudget(
  results: Results,
  workload: Extract<Workload, { readonly kind: 'added' }>,
  { allowance }: Subject,
): BudgetForm {
  const { must, aim } = workload.budget;
  const besides =
    allowance === undefined
      ? 0
      : (results.summary(workload.id, allowance.name, cpuPerRequest)?.median ?? 0);
  const plus = Math.round(besides);
  const budget = { must: must + plus, ...(aim === undefined ? {} : { aim: aim + plus }) };
  return { budget, unit: ' µs', digits: 1 };
}

function startRows({ starts }: ReportInput): string[][] {
  return starts.map(({ model, times }) => {
    const engine = model.startsWith('local/');
    const what = `start to first answer, ${engine ? `cold \`${model}\`` : 'no engine'}`;
    const summary = 'seconds' in times ? summarize(times.seconds) : undefined;
    const budget = engine ? { must: modelStartBudgetS } : startBudget;
    return budgetRow(what, summary, { budget, unit: ' s', digits: 2 });
  });
}

function cpuTable({ workloads, results, subjects }: ReportInput): string[] {
  const rows = workloads.flatMap((workload) => {
    if (workload.kind !== 'cpu' && workload.kind !== 'added') return [];
    const unit = workload.kind === 'cpu' ? workload.unit : 'request';
    return subjects.flatMap(namesOf).flatMap((name) => {
      const summarizeBy = (figure: Figure): Summary | undefined =>
        results.summary(workload.id, name, figure);
      const cpu = summarizeBy(workload.kind === 'cpu' ? cpuPerUnit(workload) : cpuPerRequest);
      if (cpu === undefined) return [];
      const rate = summarizeBy((m) => (unitsOf(workload, m) * 1000) / m.wallMs);
      const busy = summarizeBy((m) => coreShare(m.subjectUs, m));
      const rig = summarizeBy((m) => coreShare(m.loadUs + m.mockUs, m));
      return [
        [
          workload.title,
          name,
          `${range(cpu, 1, '')} per ${unit}`,
          rate === undefined ? '–' : String(Math.round(rate.median)),
          busy === undefined ? '–' : percent(busy.median),
          rig === undefined ? '–' : percent(rig.median),
        ],
      ];
    });
  });
  return table(['workload', 'subject', 'CPU µs', 'per second', 'its core', 'load core'], rows);
}

/** Of all that is measured with it. */
function namesOf({ name, beside, allowance }: Subject): string[] {
  return [name, beside, allowance].flatMap((each) =>
    each === undefined ? [] : typeof each === 'string' ? [each] : [each.name],
  );
}

function latencyTable({ workloads, results, subjects }: ReportInput): string[] {
  const rows = workloads.flatMap((workload) => {
    if (workload.kind !== 'latency') return [];
    return [direct, ...subjects].flatMap(({ name }) => {
      const p50 = results.summary(workload.id, name, (m) => m.p50Ms);
      if (p50 === undefined) return [];
      const p99 = results.summary(workload.id, name, (m) => m.p99Ms);
      const cpu = results.summary(workload.id, name, (m) => m.subjectUs / m.requests);
      return [
        [
          name,
          range(p50, 2, ' ms'),
          range(p99, 2, ' ms'),
          name === direct.name ? '–' : range(cpu, 0, ' µs'),
        ],
      ];
    });
  });
  return table(['subject', 'p50', 'p99', 'CPU per request at this rate'], rows);
}

function memoryTable({ workloads, results, subjects }: ReportInput): string[] {
  const rows = workloads.flatMap((workload) => {
    if (workload.kind !== 'memory') return [];
    return subjects.flatMap(({ name }) => {
      const idle = results.summary(workload.id, name, (m) => m.idleKb);
      if (idle === undefined) return [];
      const each = results.summary(workload.id, name, (m) => m.kbPerStream);
      return [[name, `${Math.round(idle.median / 1024)} MB`, range(each, 0, ' KB')]];
    });
  });
  return table(['subject', 'before the streams', 'each open stream'], rows);
}

function capacityLines({ workloads, results }: ReportInput): string[] {
  return workloads.flatMap((workload) => {
    const rate = results.summary(
      workload.id,
      direct.name,
      (m) => (unitsOf(workload, m) * 1000) / m.wallMs,
    );
    if (workload.kind !== 'cpu' || rate === undefined) return [];
    const share = (used: Figure): number =>
      results.summary(workload.id, direct.name, (m) => coreShare(used(m) ?? 0, m))?.median ?? 0;
    const load = share((m) => m.loadUs);
    const mock = share((m) => m.mockUs);
    const paced = workload.unit === 'chunk' ? ' (paced, not their limit)' : '';
    return [
      `- ${workload.title}: ${Math.round(rate.median)} ${workload.unit}s a second${paced}; of their core the generator took ${percent(load)}, the mock ${percent(mock)}: the ${load > mock ? 'generator' : 'mock'} would be the first limit.`,
    ];
  });
}
