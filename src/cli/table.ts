/** Rows of text in columns. */

const maxWidth = 48;

/** Pads every column but the last to its widest cell; a cell beyond 48 characters widens only its row. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, Math.min(cell.length, maxWidth));
    });
  }
  return rows
    .map((row) => {
      const padded = row.map((cell, i) =>
        i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0),
      );
      return `${padded.join('  ')}\n`;
    })
    .join('');
}
