/** Parts of RESULTS.md that other commands than the bench write; a new run of the bench keeps them. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const file = join(import.meta.dirname, 'RESULTS.md');
const begin = (name: string): string => `<!-- kept: ${name} -->\n`;
const end = '<!-- end -->\n';

/** All retained parts of a report, with their marks. */
export function savedSections(path = file): string {
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const found = text.match(/<!-- kept: [a-z-]+ -->\n[\s\S]*?<!-- end -->\n/g) ?? [];
  return found.map((section) => `\n${section}`).join('');
}

/** Puts a part in the place of the one with the same name, or behind all others. */
export function putSection(name: string, body: string, path = file): void {
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const section = `${begin(name)}\n${body.trim()}\n\n${end}`;
  const from = text.indexOf(begin(name));
  const to = text.indexOf(end, from) + end.length;
  const next =
    from === -1
      ? `${text.trimEnd()}\n\n${section}`
      : text.slice(0, from) + section + text.slice(to);
  writeFileSync(path, next);
}
