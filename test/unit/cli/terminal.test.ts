/**
 * issue 8.6: the program itself under a pseudo-terminal of 60, 80 and 200 columns (`script` of util-linux), and without
 * one.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { widthOf } from '../../../src/cli/screen.ts';
import { runsNow } from '../../support/depth.ts';
import { temporaryFolder } from '../../support/folders.ts';

const root = join(import.meta.dirname, '../../..');
const program = `${JSON.stringify(process.execPath)} src/main.ts`;
const folder = temporaryFolder('terminal');
const data = join(folder, 'data');

const hasScript = spawnSync('script', ['--version']).status === 0;
const escape = '\u001B';
const colours = new RegExp(`${escape}\\[\\d+m`, 'g');
type Variables = { readonly [name: string]: string };

function environment(more: Variables): Variables {
  const { PATH = '', HOME = '' } = process.env;
  const data_dir = { MODEL_GATEWAY_DATA_DIR: data };
  return { PATH, HOME, TERM: 'xterm-256color', ...data_dir, ...more };
}

/** What a person sees who runs this at a terminal so wide. */
function atTerminal(width: number, command: string, more: Variables = {}): string {
  const line = `stty cols ${width} rows 40; ${program} ${command}`;
  const ran = spawnSync('script', ['-qec', line, '/dev/null'], {
    cwd: root,
    env: environment(more),
    encoding: 'utf8',
    timeout: 500_000,
  });
  return ran.stdout.replaceAll('\r\n', '\n');
}

function inPipe(command: string, more: Variables = {}): { out: string; err: string } {
  const { stdout, stderr } = spawnSync('sh', ['-c', `${program} ${command}`], {
    cwd: root,
    env: environment(more),
    encoding: 'utf8',
    timeout: 500_000,
  });
  return { out: stdout, err: stderr };
}

/** Left out where the machine has no `script`: one line says so. */
function terminalTest(name: string, body: (t: TestContext) => void | Promise<void>): void {
  if (hasScript) test(name, body);
  else process.stdout.write(`left out, there is no \`script\` (util-linux): ${name}\n`);
}

const config = join(folder, 'gateway.yaml');
writeFileSync(
  config,
  `providers:
  a-provider-with-quite-a-long-name-that-someone-has-given-it:
    dialect: openai-chat
    base_url: http://a-host-with-a-long-name.example.internal:8000/a/long/path/v1
models:
  名前の長いモデル: a-provider-with-quite-a-long-name-that-someone-has-given-it/model
`,
);

for (const width of [60, 80, 200].filter((each) => runsNow(each === 60))) {
  terminalTest(`issue 8.6 check at ${width} columns: no line is wider, and it is coloured`, () => {
    const text = atTerminal(width, `check --config ${config}`);
    assert.match(text, /The configuration is valid\./);
    assert.ok(text.includes(`${escape}[32mThe configuration is valid.${escape}[39m`));
    const lines = text.replaceAll(colours, '').split('\n');
    for (const line of lines) assert.ok(widthOf(line) <= width, `${widthOf(line)}: ${line}`);
    assert.equal(
      lines.some((line) => line.includes('…')),
      width < 200,
    );
  });
}

if (runsNow(false))
  terminalTest('issue 8.6 NO_COLOR holds at a terminal, FORCE_COLOR in a pipe', () => {
    assert.ok(!atTerminal(80, `check --config ${config}`, { NO_COLOR: '1' }).includes(escape));
    assert.ok(inPipe(`check --config ${config}`, { FORCE_COLOR: '1' }).out.includes(escape));
  });

test('issue 8.6 in a pipe nothing is cut or coloured', () => {
  const { out } = inPipe(`check --config ${config}`);
  assert.ok(!out.includes(escape) && !out.includes('…'));
  assert.ok(out.includes('http://a-host-with-a-long-name.example.internal:8000/a/long/path/v1'));
});

terminalTest('B65 a name that holds escapes colours and moves nothing', () => {
  const bad = join(folder, 'bad.yaml');
  writeFileSync(bad, 'models: { "a\\e[2J\\e]0;owned\\a\\u202e": "nobody/x" }\n');
  const shown = atTerminal(80, `check --config ${bad}`).replaceAll(colours, '');
  assert.match(shown, /nobody/);
  assert.ok(!/[\p{Cc}\p{Cf}]/u.test(shown.replaceAll('\n', '')), JSON.stringify(shown));
});

terminalTest(
  'issue 8.6 the banner is whole at 60 columns: what is to be copied is not cut',
  async () => {
    const line = `stty cols 60 rows 40; exec ${program} start --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0`;
    const child = spawn('script', ['-qefc', line, '/dev/null'], {
      cwd: root,
      env: environment({}),
    });
    let text = '';
    let ended = false;
    child.stdout.setEncoding('utf8');
    child.stdin.on('error', () => undefined);
    const deadline = AbortSignal.timeout(60_000);
    for await (const piece of child.stdout) {
      text += String(piece);
      // Ctrl-C, as a person ends it.
      if (text.includes('More clients') && !ended) {
        ended = true;
        child.stdin.write('\u0003');
      }
      if (deadline.aborted) break;
    }
    child.kill();
    const plain = text.replaceAll(colours, '').replaceAll('\r\n', '\n');
    assert.ok(text.includes(`${escape}[1mkey`), 'labels stand out');
    const [, key = ''] = /^key +(\S+) /m.exec(plain) ?? [];
    assert.ok(key.length >= 16);
    assert.ok(plain.includes(`Bearer ${key}`), 'the line for curl has the whole key');
  },
);

// Behind the start: it has made the store.
terminalTest('issue 8.6 tables of a command fit a narrow terminal', () => {
  inPipe(`keys create --name ${'n'.repeat(60)} --models 'openai/*,anthropic/*,local/*,up/*'`);
  const shown = atTerminal(60, 'keys list').replaceAll(colours, '');
  assert.match(shown, /NAME/);
  // The line before the table says which store was read; a path is not cut.
  for (const line of shown.split('\n').slice(1)) assert.ok(widthOf(line) <= 60, line);
  const [{ id }] = JSON.parse(inPipe('keys list --json').out);
  assert.ok(shown.includes(`ID         ${id}\n`), 'an id is there to be copied');
  assert.ok(inPipe('keys list').out.includes('n'.repeat(60)));
});
