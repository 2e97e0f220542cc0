import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectCommand } from '../../../src/cli/commands/connect.ts';
import { helpCommand } from '../../../src/cli/help.ts';
import { versionCommand } from '../../../src/cli/version.ts';
import { tryParse } from '../../../src/json/parse.ts';
import { run } from './context.ts';

const version = versionCommand({ version: '1.2.3', node: 'v24.0.0' });
const help = helpCommand([connectCommand, version]);

test('version prints both versions', async () => {
  assert.equal((await run(version, [])).out, 'model-gateway 1.2.3\nnode v24.0.0\n');
  const { out } = await run(version, ['--json']);
  assert.deepEqual(tryParse(out), { version: '1.2.3', node: 'v24.0.0' });
  assert.equal((await run(version, ['x'])).code, 2);
  assert.match((await run(version, ['--help'])).out, /^Usage/);
});

test('help lists the commands, explains one, and guesses at a misspelt one', async () => {
  const { out, code } = await run(help, []);
  assert.equal(code, 0);
  assert.match(out, /^ {2}connect +print or write/m);
  assert.match(out, /^ {2}help /m);
  assert.equal((await run(help, ['connect'])).out, connectCommand.help);
  const wrong = await run(help, ['conect']);
  assert.equal(wrong.code, 2);
  assert.match(wrong.err, /conect: unknown command\. Did you mean "connect"\?/);
});
