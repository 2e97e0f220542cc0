/** The tables behind the budgets: every subject's own figures. */
import {
  coreShare,
  cpuPerRequest,
  cpuPerUnit,
  unitsOf,
  type Figure,
  type Results,
  type Summary,
} from './analysis.ts';
import { percent } from './machine.ts';
import { direct } from './subject.ts';
import { range, table } from './tables.ts';
import type { Workload } from './workloads.ts';

interface TableInput {
  readonly workloads: readonly Workload[];
  readonly results: Results;
}

/** CPU time of a request or chunk, and how busy everybody was. */
export function cpuTable({ workloads, results }: TableInput): string[] {
  const rows = workloads.flatMap((workload) => {
    if (workload.kind !== 'cpu' && workload.kind !== 'added') return [];
    const unit = workload.kind === 'cpu' ? workload.unit : 'request';
    return between(results, workload).flatMap((name) => {
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

/** Whole answers at a fixed rate. */
export function latencyTable({ workloads, results }: TableInput): string[] {
  const rows = workloads.flatMap((workload) => {
    if (workload.kind !== 'latency') return [];
    return results.subjectsOf(workload.id).flatMap((name) => {
      const p50 = results.summary(workload.id, name, (m) => m.p50Ms);
      if (p50 === undefined) return [];
      const p99 = results.summary(workload.id, name, (m) => m.p99Ms);
      const cpu = results.summary(workload.id, name, cpuPerRequest);
      return [
        [
          workload.title,
          name,
          range(p50, 2, ' ms'),
          range(p99, 2, ' ms'),
          name === direct.name ? '–' : range(cpu, 0, ' µs'),
        ],
      ];
    });
  });
  return table(['calls', 'subject', 'p50', 'p99', 'CPU per request at this rate'], rows);
}

const delayFigures: readonly Figure[] = [
  (m) => m.p50Ms,
  (m) => m.p99Ms,
  (m) => m.chunkP50Ms,
  (m) => m.chunkP99Ms,
];

/** What is added to the first byte and to each chunk; of the direct way, what there is without anybody. */
export function delayTable({ workloads, results }: TableInput): string[] {
  const rows = workloads.flatMap((workload) => {
    if (workload.kind !== 'delay') return [];
    const base = { workload: workload.id, subject: direct.name };
    return results.subjectsOf(workload.id).flatMap((subject) => {
      const cells = delayFigures.map((figure) => {
        const own = { workload: workload.id, subject };
        if (subject === direct.name) return results.summary(workload.id, subject, figure);
        return results.paired(own, base, figure, (a, b) => a - b);
      });
      if (cells.every((cell) => cell === undefined)) return [];
      const name = subject === direct.name ? 'direct (absolute)' : subject;
      return [[workload.title, name, ...cells.map((cell) => range(cell, 2, ' ms'))]];
    });
  });
  if (rows.length === 0) return [];
  const head = ['stream', 'subject', 'first byte p50', 'p99', 'each chunk p50', 'p99'];
  return [
    'Added to the direct way, paired within a round: from the scheduled start of a call to the first byte of its answer, and from when the upstream owed a chunk to its arrival.',
    '',
    ...table(head, rows),
  ];
}

/** Resident memory by the number of open streams. */
export function memoryTable({ workloads, results }: TableInput): string[] {
  const rows = workloads.flatMap((workload) => {
    if (workload.kind !== 'memory') return [];
    return results.subjectsOf(workload.id).flatMap((name) => {
      const idle = results.summary(workload.id, name, (m) => m.idleKb);
      if (idle === undefined) return [];
      const each = results.summary(workload.id, name, (m) => m.kbPerStream);
      const before = `${Math.round(idle.median / 1024)} MB`;
      return [[String(workload.streams), name, before, range(each, 0, ' KB')]];
    });
  });
  return table(['streams', 'subject', 'before the streams', 'each open stream'], rows);
}

/** What load and mock can do without anything between, and which of them would be the first limit. */
export function capacityLines({ workloads, results }: TableInput): string[] {
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

function between(results: Results, { id }: Workload): readonly string[] {
  return results.subjectsOf(id).filter((name) => name !== direct.name);
}
