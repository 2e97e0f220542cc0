/** The examples of the documents are what the program takes: each block of YAML passes `check`. */
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkCommand } from '../../../src/compose/commands/config-commands.ts';
import { scene } from '../config/scene.ts';
import { run } from './context.ts';

const root = join(import.meta.dirname, '..', '..', '..');

interface Example {
  /** Page and line. */
  readonly at: string;
  readonly yaml: string;
}

function examplesOf(page: string): readonly Example[] {
  const text = readFileSync(join(root, page), 'utf8');
  return [...text.matchAll(/^```yaml\n([^]*?)^```$/gm)].map((found) => ({
    at: `${page}:${text.slice(0, found.index).split('\n').length}`,
    yaml: found[1] ?? '',
  }));
}

/** Whatever an example takes from the environment. */
function environmentOf(yaml: string): { readonly [name: string]: string } {
  const names = [...yaml.matchAll(/\$\{([A-Z_]+)\}/g)].map(([, name = '']) => name);
  const entries = names.map((name) => [name, `value-of-${name.toLowerCase()}`] as const);
  return {
    ...Object.fromEntries(entries),
    DATABASE_URL: 'postgres://gateway:pw@localhost/gateway',
    SLACK_WEBHOOK_URL: 'https://hooks.slack.example/services/one',
    OPENAI_API_KEY: 'a-key-of-openai',
    ANTHROPIC_API_KEY: 'a-key-of-anthropic',
    GEMINI_API_KEY: 'a-key-of-gemini',
    AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '/v2/credentials/own',
  };
}

const pages = [
  'README.md',
  'SECURITY.md',
  ...globSync('docs/{*,{user,operator,maintainer}/*}.md', { cwd: root }),
];
const examples = pages.flatMap(examplesOf);

/** What examples name beside them. */
const files = [
  ['ca.pem', 'corp-root.pem'],
  ['ca.pem', 'staff.crt'],
  ['good.pem', 'tls.crt'],
  ['leaf-key.pem', 'tls.key'],
] as const;

test('N3: the documents have examples', () => assert.ok(examples.length >= 14));

for (const { at, yaml } of examples) {
  test(`N3: the example at ${at} is valid`, async () => {
    const { directory } = scene(yaml);
    for (const [name, copy] of files) {
      copyFileSync(join(root, 'test/support/tls', name), join(directory, copy));
      chmodSync(join(directory, copy), 0o600);
    }
    const args = ['--config', join(directory, 'gateway.yaml'), '--data-dir', join(directory, 'd')];
    const { code, out, err } = await run(checkCommand, args, environmentOf(yaml));
    assert.equal(code, 0, err);
    assert.match(out, /The configuration is valid/);
  });
}

test('D: a curl command of the documents that sends JSON says so', () => {
  const commands = pages.flatMap((page) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(/^curl (?:.*\\\n)*.*$/gm)].map(
      ([command]) => `${page}: ${command}`,
    ),
  );
  const sending = commands.filter((command) => / -d /.test(command));
  assert.ok(sending.length >= 2);
  for (const command of sending) assert.match(command, /content-type: application\/json/i);
});
