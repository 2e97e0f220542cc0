/**
 * `${NAME}` and `${file:/path}` in values of the file; `$${` stands for a literal `${`. What looks
 * like another tool's reference is an error: it would go upstream as it is written (N3).
 */
import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Resolve } from './yaml-text.ts';

export type Environment = { readonly [name: string]: string | undefined };

export interface ReferenceScope {
  readonly env: Environment;
  /** Relative file references start here. */
  readonly directory: string;
}

const referenceForm = /\$\$\{|\$\{([^}]*)(\}?)/g;
const nameForm = /^[A-Za-z_][A-Za-z0-9_]*$/;
const foreignForms: readonly RegExp[] = [
  /^\$([A-Za-z_][A-Za-z0-9_]*)$/,
  /^os\.environ\/(\w+)$/,
  /^process\.env\.(\w+)$/,
  /^env[:.]([A-Za-z_]\w*)$/i,
  /^\{\{?\s*(?:env\.)?([A-Z_][A-Z0-9_]*)\s*\}?\}$/,
];

/** A resolver for the values of one file. */
export function resolver(scope: ReferenceScope): Resolve {
  return (text) => {
    const foreign = foreignForms.map((form) => form.exec(text)?.[1]).find(Boolean);
    if (foreign !== undefined) return { problem: `is no reference here; write \${${foreign}}` };
    if (!text.includes('${')) return { text };
    let problem: string | undefined;
    const filled = text.replace(referenceForm, (whole, inner: string, close: string) => {
      if (whole === '$${') return '${';
      const value = close === '' ? { problem: '${ is never closed' } : lookUp(inner, scope);
      if ('text' in value) return value.text;
      problem ??= value.problem;
      return '';
    });
    return problem === undefined ? { text: filled } : { problem };
  };
}

function lookUp(inner: string, scope: ReferenceScope): ReturnType<Resolve> {
  if (inner.startsWith('file:')) return readSecretFile(inner.slice('file:'.length), scope);
  if (!nameForm.test(inner)) {
    return {
      problem: `\${${inner}} is no reference: \${NAME} or \${file:/path}; $\${ stands for \${`,
    };
  }
  const value = scope.env[inner];
  if (value === undefined) return { problem: `the environment variable ${inner} is not set` };
  if (value === '') return { problem: `the environment variable ${inner} is empty` };
  return { text: value };
}

function readSecretFile(name: string, scope: ReferenceScope): ReturnType<Resolve> {
  if (name === '') return { problem: '${file:} names no file' };
  const path = resolve(scope.directory, name);
  try {
    // One final line end is the editor's, not the secret's.
    const text = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
    if (text === '') return { problem: `the file ${name} is empty` };
    if (isOpenToAll(path)) {
      return {
        problem: `the file ${name} is readable by every user of this machine; chmod 600 it`,
      };
    }
    return { text };
  } catch (error) {
    return { problem: `the file ${name} cannot be read (${reason(error)})` };
  }
}

/**
 * Whether every user of the machine can read the file (S25): its own mode allows it, and so does
 * every directory above it. Always false on Windows, where modes say nothing.
 * @throws the file system's error when the file is not there.
 */
export function isOpenToAll(path: string): boolean {
  if (process.platform === 'win32' || (statSync(path).mode & 0o004) === 0) return false;
  for (let directory = dirname(path); ; directory = dirname(directory)) {
    if ((statSync(directory).mode & 0o001) === 0) return false;
    if (directory === dirname(directory)) return true;
  }
}

/** The system's code, e.g. `ENOENT`; never the text, which names the path again. */
export function reason(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason';
}
