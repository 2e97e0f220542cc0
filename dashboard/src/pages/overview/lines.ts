/** Points of an answer as the lines of a chart. */
import type { Grouping, SeriesAnswer, SeriesGroup, SeriesSums } from '../../api/series.ts';
import { stepsOf } from '../../api/period.ts';
import { seriesColour, type Series } from '../../components/series-colour.ts';

export interface Lines {
  readonly times: readonly number[];
  readonly series: readonly Series[];
}

/** What a chart draws of a point. */
export interface Measure {
  readonly name: string;
  readonly of: (sums: SeriesSums) => number | null;
  /** Of a step without calls: 0 for counts, null for what cannot be known. */
  readonly empty: 0 | null;
  /** A custom property; default: by its place. */
  readonly colour?: string;
}

/** Lines in a chart, at most: people cannot distinguish more colours. */
export const maxLines = 6;

/** One line for each measure of the first group: of all calls. */
export function linesOfMeasures(answer: SeriesAnswer, measures: readonly Measure[]): Lines {
  const times = stepsOf(answer);
  const [group] = answer.groups;
  const series = measures.map((measure) => ({
    name: measure.name,
    values: valuesOf(times, group, measure),
    ...(measure.colour === undefined ? {} : { colour: measure.colour }),
  }));
  return { times, series };
}

/** One line for each group. */
export function linesOfGroups(answer: SeriesAnswer, measure: Measure, by: Grouping): Lines {
  const times = stepsOf(answer);
  const names = new Map<string, number>();
  const colours = groupColours(answer);
  const series = answer.groups.slice(0, maxLines).map((group) => ({
    name: distinct(groupName(group, by), names),
    values: valuesOf(times, group, measure),
    colour: colours.get(group.name) ?? '--line-strong',
  }));
  return { times, series };
}

/** A group has one colour in all charts of the page: those that cost most come first, then those with the most calls. */
export function groupColours({ groups }: SeriesAnswer): ReadonlyMap<string | null, string> {
  const cost = ({ cost_usd: usd }: SeriesGroup): number => usd ?? 0;
  const shown = [
    ...groups.toSorted((a, b) => cost(b) - cost(a) || b.calls - a.calls).slice(0, maxLines),
    ...groups.toSorted((a, b) => b.calls - a.calls).slice(0, maxLines),
  ];
  const names = [...new Set(shown.map(({ name }) => name))];
  return new Map(names.map((name, i) => [name, seriesColour(i)]));
}

/** The group of calls that have no such property. */
const withoutName: { readonly [G in Grouping]: string } = {
  model: 'no known model',
  answered: 'no provider asked',
  provider: 'no provider asked',
  key: 'no key',
  team: 'no team',
  user: 'no user',
  tag: 'no tag',
};

/** What people call a group. */
export function groupName(group: SeriesGroup, by: Grouping): string {
  return group.key_name ?? group.name ?? withoutName[by];
}

/** Two keys may have one name. */
function distinct(name: string, seen: Map<string, number>): string {
  const times = (seen.get(name) ?? 0) + 1;
  seen.set(name, times);
  return times === 1 ? name : `${name} (${times})`;
}

function valuesOf(
  times: readonly number[],
  group: SeriesGroup | undefined,
  { of, empty }: Measure,
): readonly (number | null)[] {
  const known = new Map(group?.points.map((point) => [Date.parse(point.at), of(point)]));
  return times.map((at) => known.get(at) ?? empty);
}
