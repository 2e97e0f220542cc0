/** Words as a shell takes them, for lines that a person pastes. The dashboard has it, too: it needs nothing of Node. */

/** One word for the shell: as it is where that is safe, else in single quotes. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
