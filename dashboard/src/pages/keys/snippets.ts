/** A first call with a new key, in three languages. */
import { chatPython, chatTypescript } from '../../../../src/cli/clients/libraries.ts';
import { chatCurl, type Connection } from '../../../../src/cli/connection.ts';

export interface Snippet {
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

/** With the official SDKs. The key is in them: they are shown once, as it is. */
export function keySnippets(connection: Connection): readonly Snippet[] {
  return [
    { id: 'curl', title: 'curl', text: chatCurl(connection) },
    { id: 'typescript', title: 'TypeScript', text: chatTypescript(connection) },
    { id: 'python', title: 'Python', text: chatPython(connection) },
  ];
}

/** Ships with the gateway. */
const alwaysThere = 'local/tiny';

/**
 * A model that the key may call: the first that it names, else the first listed one that begins as one of its patterns
 * does.
 */
export function exampleModel(allowed: readonly string[], listed: readonly string[]): string {
  const named = allowed.find((name) => !name.includes('*'));
  if (named !== undefined) return named;
  const starts = allowed.map((pattern) => pattern.split('*')[0] ?? '');
  if (starts.includes('') && listed.includes(alwaysThere)) return alwaysThere;
  return listed.find((name) => starts.some((start) => name.startsWith(start))) ?? alwaysThere;
}
