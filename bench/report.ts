/** Writes the figures as Markdown. */
import { summarize, type Results } from './analysis.ts';
import { budgetLines } from './budget-table.ts';
import { engineBudgets, engineLines } from './engine-report.ts';
import type { EngineFigures } from './engine.ts';
import { capacityLines, cpuTable, delayTable, latencyTable, memoryTable } from './figure-tables.ts';
import type { Run } from './saved-measurements.ts';
import type { StartTimes } from './startup.ts';
import { budgetRow, one, range } from './tables.ts';
import {
  installBudgetMb,
  modelStartBudgetS,
  restBudgetMb,
  startBudget,
  type Workload,
} from './workloads.ts';

export interface ReportInput {
  /** Whose figures these are, the latest first. */
  readonly runs: readonly Run[];
  /** What could not be measured, and why. */
  readonly missing: readonly string[];
  /** Seen in the figures, besides what each run saw of its machine. */
  readonly doubts: readonly string[];
  readonly workloads: readonly Workload[];
  readonly results: Results;
  readonly starts: readonly { readonly model: string; readonly times: StartTimes }[];
  readonly engines: readonly EngineFigures[];
  readonly installMb: number | undefined;
  /** Pictures beside the report: title and file. */
  readonly plots: readonly { readonly title: string; readonly file: string }[];
}

/** The whole report. */
export function renderReport(input: ReportInput): string {
  const warnings = [...input.runs.flatMap((run) => run.warnings), ...input.doubts];
  return [
    '# Benchmark results',
    '',
    'The method is in [README.md](README.md), the figures of each round in [measurements.json](measurements.json).',
    '',
    ...input.runs.map(runLine),
    ...input.missing.map((line) => `- Left out: ${line}`),
    ...section(
      'Warnings',
      [...new Set(warnings)].map((line) => `- ${line}`),
    ),
    ...section('Failures', failureLines(input)),
    ...section('Budgets', budgets(input)),
    ...section('CPU', cpuTable(input)),
    ...section('Latency at a constant rate', latencyTable(input)),
    ...section('Delays of streams', delayTable(input)),
    ...section('Memory', memoryTable(input)),
    ...section('The embedded engine', engineLines(input.engines)),
    ...section('Load and mock alone', capacityLines(input)),
    ...section(
      'Plots',
      input.plots.flatMap(({ title, file }, at) => [
        ...(at === 0 ? [] : ['']),
        `![${title}](${file})`,
      ]),
    ),
    '',
  ].join('\n');
}

function runLine(run: Run): string {
  const versions = run.subjects.map(({ name, version }) => `${name} ${version}`).join(', ');
  return `- \`${run.command}\` on ${run.date}, ${run.machine}; source at ${run.commit}; ${run.method}; ${versions === '' ? 'no subject' : versions}. It measured ${run.measured.join(', ')}.`;
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

function budgets(input: ReportInput): string[] {
  return budgetLines(input, [
    ...startRows(input),
    ...input.engines.flatMap(engineBudgets),
    budgetRow('install size', input.installMb === undefined ? undefined : one(input.installMb), {
      budget: { must: installBudgetMb },
      unit: ' MB',
      digits: 0,
    }),
  ]);
}

function startRows({ starts }: ReportInput): string[][] {
  return starts.flatMap(({ model, times }) => {
    const engine = model.startsWith('local/');
    const which = engine ? `cold \`${model}\`` : 'no engine';
    const summary = 'seconds' in times ? summarize(times.seconds) : undefined;
    const budget = engine ? { must: modelStartBudgetS } : startBudget;
    const start = budgetRow(`start to first answer, ${which}`, summary, {
      budget,
      unit: ' s',
      digits: 2,
    });
    const rest = 'seconds' in times ? summarize(times.restMb ?? []) : undefined;
    if (rest === undefined) return [start];
    // A gateway with a loaded model has no budget for memory.
    const what = `resident memory at rest after one call, ${engine ? `\`${model}\` loaded` : 'no engine'}`;
    const figure = { unit: ' MB', digits: 0 };
    return [
      start,
      engine
        ? [what, '–', '–', range(rest, 0, ' MB'), '–']
        : budgetRow(what, rest, { budget: restBudgetMb, ...figure }),
    ];
  });
}
