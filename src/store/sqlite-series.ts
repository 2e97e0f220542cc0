/**
 * Sums over time on SQLite. Which groups are wanted is found first, among the groups and by their number of
 * calls: 500 keys over 90 days are 45,000 sums, of which a chart shows those of eight. Roll-ups are then read
 * one time after the other, so that what has to be sorted by name is small: three times as fast as all at once.
 */
import type { SeriesQuery, SeriesRow } from './calls.ts';
import type { KeptSince, Period, UsagePlan } from './roll-up.ts';
import { busiestOf, planSeries, SeriesSums, stepMs } from './series.ts';
import { readSums } from './sqlite-call-rows.ts';
import { number, text, type Value } from './sqlite-columns.ts';
import type { Statements } from './sqlite-statements.ts';
import { callSums, groupFilter, inGroup, labels, totals } from './sqlite-usage-sql.ts';

const tables = { days: 'usage_days', hours: 'usage_hours' } as const;
const rollUps = ['days', 'hours'] as const;
type RollUp = (typeof rollUps)[number];

/** In the memory of the connection: the file is not written. */
const makeWanted = `CREATE TEMP TABLE IF NOT EXISTS wanted_groups
  (id INTEGER PRIMARY KEY, label TEXT NOT NULL) STRICT`;
const forget = 'DELETE FROM wanted_groups';
const wantedLabels = 'SELECT DISTINCT label FROM wanted_groups';
const dropOthers =
  'DELETE FROM wanted_groups WHERE label NOT IN (SELECT value FROM json_each($names))';

const labelOf = ({ by }: SeriesQuery): string => (by === undefined ? "''" : labels[by]);

const wantedSql = (query: SeriesQuery): string => `INSERT INTO wanted_groups
  SELECT id, ${labelOf(query)} FROM usage_groups WHERE ${inGroup}`;

const callsOfGroups = (source: RollUp): string => `SELECT label, total(calls) AS calls
  FROM (SELECT group_id, sum(calls) AS calls FROM ${tables[source]}
    WHERE at >= $from AND at < $to GROUP BY group_id)
  JOIN wanted_groups ON id = group_id GROUP BY label`;

const nextTime = (source: RollUp): string =>
  `SELECT min(at) AS at FROM ${tables[source]} WHERE at >= $from AND at < $to`;

const sumsAt = (source: RollUp): string => `SELECT label, ${totals}
  FROM ${tables[source]} CROSS JOIN wanted_groups ON id = group_id WHERE at = $at GROUP BY label`;

const sumsOfAll = (source: RollUp): string => `SELECT at, ${totals}
  FROM ${tables[source]} WHERE at >= $from AND at < $to GROUP BY at`;

function sumsOfCalls(query: SeriesQuery): string {
  const unit = stepMs[query.step];
  return `SELECT at / ${unit} * ${unit} AS at, ${labelOf(query)} AS label, ${totals} FROM ${callSums}
    WHERE at >= $from AND at < $to AND ${inGroup} GROUP BY 1, 2`;
}

/** Reads one series; inside a reading transaction. */
export class SqliteSeries {
  readonly #sql: Statements;
  readonly #query: SeriesQuery;
  readonly #plan: UsagePlan;
  readonly #filter: Record<string, Value>;
  readonly #series: SeriesSums;

  /** @param kept since when calls and hours are there. */
  constructor(sql: Statements, query: SeriesQuery, kept: KeptSince) {
    this.#sql = sql;
    this.#query = query;
    this.#plan = planSeries(query, kept);
    this.#filter = groupFilter(query.filter ?? {});
    this.#series = new SeriesSums(query);
  }

  rows(): readonly SeriesRow[] {
    const { by, filter = {} } = this.#query;
    this.#readCalls();
    if (by === undefined && Object.keys(filter).length === 0) this.#readAll();
    else this.#readGroups();
    return this.#series.rows();
  }

  /** Of the ragged ends: few enough to be read for every group. */
  #readCalls(): void {
    const statement = this.#sql.of(sumsOfCalls(this.#query));
    for (const period of this.#plan.calls) {
      for (const row of statement.iterate({ ...this.#filter, ...period })) {
        this.#series.add(number(row, 'at'), text(row, 'label'), readSums(row));
      }
    }
  }

  #readAll(): void {
    for (const { source, period } of this.#parts()) {
      for (const row of this.#sql.of(sumsOfAll(source)).iterate({ ...period })) {
        this.#series.add(number(row, 'at'), '', readSums(row));
      }
    }
  }

  #readGroups(): void {
    this.#choose();
    for (const { source, period } of this.#parts()) {
      const sums = this.#sql.of(sumsAt(source));
      for (const at of this.#times(source, period)) {
        for (const row of sums.iterate({ at })) {
          this.#series.add(at, text(row, 'label'), readSums(row));
        }
      }
    }
    this.#sql.of(forget).run();
  }

  /** Leaves those groups in `wanted_groups` that are shown. */
  #choose(): void {
    this.#sql.of(makeWanted).run();
    this.#sql.of(forget).run();
    this.#sql.of(wantedSql(this.#query)).run(this.#filter);
    const calls = this.#series.calls();
    for (const row of this.#sql.of(wantedLabels).iterate()) {
      const name = text(row, 'label');
      calls.set(name, calls.get(name) ?? 0);
    }
    if (calls.size <= this.#query.groups) return;
    for (const { source, period } of this.#parts()) {
      for (const row of this.#sql.of(callsOfGroups(source)).iterate({ ...period })) {
        const name = text(row, 'label');
        calls.set(name, (calls.get(name) ?? 0) + number(row, 'calls'));
      }
    }
    const names = JSON.stringify(busiestOf(calls, this.#query.groups));
    this.#sql.of(dropOthers).run({ names });
  }

  #parts(): readonly { readonly source: RollUp; readonly period: Period }[] {
    return rollUps.flatMap((source) => this.#plan[source].map((period) => ({ source, period })));
  }

  *#times(source: RollUp, { from, to }: Period): Generator<number> {
    const next = this.#sql.of(nextTime(source));
    for (let begin = from; ;) {
      const at = next.get({ from: begin, to })?.['at'];
      if (typeof at !== 'number') return;
      yield at;
      begin = at + 1;
    }
  }
}
