/** Rows of text in columns. */

const maxWidth = 48;

/**
 * Text that cannot move the cursor or turn the terminal's colours: names come from clients.
 * @returns the text with `?` for every control and direction character.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
}

/** Pads every column but the last to its widest cell; a cell beyond 48 characters widens only its row. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  const safe = rows.map((row) => row.map(printable));
  for (const row of safe) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, Math.min(cell.length, maxWidth));
    });
  }
  return safe
    .map((row) => {
      const padded = row.map((cell, i) =>
        i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0),
      );
      return `${padded.join('  ')}\n`;
    })
    .join('');
}
