/** A chart of bars as plain SVG, which any browser and any viewer of Markdown shows, in light and in dark. */

export interface Bar {
  readonly label: string;
  readonly value: number;
  /** Over the rounds; drawn as a line over the end of the bar. */
  readonly min?: number;
  readonly max?: number;
}

export interface BarChart {
  readonly title: string;
  readonly unit: string;
  readonly groups: readonly { readonly label: string; readonly bars: readonly Bar[] }[];
  /** Bars of a logarithmic scale begin at a power of ten below the least value. */
  readonly scale: 'linear' | 'logarithmic';
}

const width = 820;
const labelWidth = 190;
const valueWidth = 110;
const plotWidth = width - labelWidth - valueWidth;
const barHeight = 16;
const barGap = 4;
const groupGap = 26;
const headHeight = 44;
const colors = ['#5b8def', '#8a8f98', '#e0663e', '#3fa66a', '#a06bd0', '#c9a227', '#d0578a'];

/** @throws Error for values that a logarithmic scale cannot show */
export function barChart(chart: BarChart): string {
  const place = scaleOf(chart);
  const colorOf = new Map<string, string>();
  const parts: string[] = [];
  let y = headHeight;
  for (const { label, bars } of chart.groups) {
    parts.push(text({ x: 8, y: y + 12, weight: 'bold' }, label));
    y += 20;
    for (const bar of bars) {
      const color = colorOf.get(bar.label) ?? colors[colorOf.size % colors.length] ?? '#888';
      colorOf.set(bar.label, color);
      parts.push(...barParts(bar, { y, color, unit: chart.unit, place }));
      y += barHeight + barGap;
    }
    y += groupGap - barGap;
  }
  const how = chart.scale === 'logarithmic' ? `${chart.unit}, logarithmic` : chart.unit;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" width="${width}" height="${y}" font-family="sans-serif" font-size="12">`,
    '<style>text{fill:#222}.range{stroke:#222}@media(prefers-color-scheme:dark){text{fill:#ddd}.range{stroke:#ddd}}</style>',
    text({ x: 8, y: 20, weight: 'bold' }, `${chart.title} (${how})`),
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

interface BarPlace {
  readonly y: number;
  readonly color: string;
  readonly unit: string;
  place(value: number): number;
}

function barParts({ label, value, min, max }: Bar, { y, color, unit, place }: BarPlace): string[] {
  const middle = y + barHeight / 2;
  const end = place(value);
  const parts = [
    text({ x: labelWidth - 8, y: middle + 4, anchor: 'end' }, label),
    `<rect x="${labelWidth}" y="${y}" width="${end.toFixed(1)}" height="${barHeight}" fill="${color}"/>`,
  ];
  let furthest = end;
  if (min !== undefined && max !== undefined && max > min) {
    furthest = place(max);
    const [from, to] = [place(min), furthest].map((at) => (labelWidth + at).toFixed(1));
    parts.push(`<line class="range" x1="${from}" x2="${to}" y1="${middle}" y2="${middle}"/>`);
  }
  const shown = value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2);
  parts.push(text({ x: labelWidth + furthest + 6, y: middle + 4 }, `${shown} ${unit}`));
  return parts;
}

/** Where a value ends, in pixels from where the bars begin. */
function scaleOf({ groups, scale }: BarChart): (value: number) => number {
  const values = groups.flatMap(({ bars }) =>
    bars.flatMap(({ value, min = value, max = value }) => [value, min, max]),
  );
  const most = Math.max(...values, 0);
  if (scale === 'linear') {
    return (value) => (most === 0 ? 0 : Math.max(0, (value / most) * plotWidth));
  }
  const least = Math.min(...values);
  if (!(least > 0)) throw new Error('a logarithmic scale has no place for 0 and below');
  const from = Math.floor(Math.log10(least) - 0.001);
  const whole = Math.log10(most) - from;
  return (value) => ((Math.log10(value) - from) / whole) * plotWidth;
}

interface TextPlace {
  readonly x: number;
  readonly y: number;
  readonly anchor?: 'end';
  readonly weight?: 'bold';
}

function text({ x, y, anchor, weight }: TextPlace, content: string): string {
  const how = `${anchor === undefined ? '' : ` text-anchor="${anchor}"`}${weight === undefined ? '' : ` font-weight="${weight}"`}`;
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}"${how}>${escaped(content)}</text>`;
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
