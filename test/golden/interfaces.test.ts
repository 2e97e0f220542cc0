/** Freezes what programs and people depend on besides the API of calls: config, admin API, metrics, errors, commands, log events. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import type { Json } from '../../src/json/value.ts';
import { tryParse } from '../../src/json/parse.ts';
import { loadCommands } from '../../src/main.ts';
import { helpCommand } from '../../src/cli/help.ts';
import { errorTable as messagesErrors } from '../../src/dialects/anthropic-messages/errors.ts';
import { errorTable as chatErrors } from '../../src/dialects/openai-chat/errors.ts';
import { adminToken } from '../support/keys.ts';
import { requestBody } from '../support/requests.ts';
import { ask } from '../support/rig.ts';
import { scrapeUntil } from '../support/scrape.ts';
import { errorIn, replying } from '../upstream/reply.ts';
import { startLimitedRig, type LimitedRig } from '../limits/limited-rig.ts';
import { run } from '../unit/cli-config/context.ts';
import { assertGolden, splitProse } from './golden.ts';

const root = join(import.meta.dirname, '../..');
const usage = { fresh: 30, cacheRead: 60, cacheWrite: 10, output: 50, reasoning: 20 };

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig({
    models: { rescued: { targets: ['up-chat/broken', 'up-messages/good'] } },
    traces: { endpoint: 'http://127.0.0.1:9' },
  });
});
after(() => rig.stop());

test('admin API: OpenAPI document', async (t) => {
  const reply = await admin('/api/openapi.json');
  const { form, prose } = splitProse(readJson(reply.replace(/"version":"[^"]*"/, '"version":"0"')));
  assertGolden(t, 'admin-openapi.json', form);
  assertGolden(t, 'admin-openapi.prose.txt', prose);
});

test('metrics: names, types, units, labels', async (t) => {
  rig.upstreams.chat.script('broken', errorIn('chat', 500, 'broken'));
  rig.upstreams.chat.script('fine', replying('chat', { text: 'Hi.', usage }));
  rig.upstreams.messages.script('good', replying('messages', { text: 'Hi.', usage }));
  const key = await rig.key({ budgets: [{ usd: '1', per: 'day' }] });
  await rig.call(key, 'chat', requestBody('chat', { model: 'up-chat/fine', stream: false }));
  await ask(rig, 'chat', requestBody('chat', { model: 'rescued', stream: true }));
  await scrapeUntil(rig.gateway.adminUrl, (read) => read.sum('model_gateway_calls_total') === 2);
  const text = await admin('/metrics', 'application/openmetrics-text');
  const families = familiesOf(text);
  assertGolden(t, 'metrics.txt', families.map(({ form }) => `${form}\n`).join(''));
  assertGolden(t, 'metrics.prose.txt', families.map(({ help }) => `${help}\n`).join(''));
});

test('errors: status, type and code of each code in both dialects', (t) => {
  const rows = Object.entries({ chat: chatErrors, messages: messagesErrors }).flatMap(
    ([dialect, table]) =>
      Object.entries(table).map(
        ([error, { status, type, code }]) => `${error} ${dialect} ${status} ${type} ${code}\n`,
      ),
  );
  assertGolden(t, 'errors.txt', rows.toSorted().join(''));
});

test('commands: the help of each', async (t) => {
  const overview = await program('help');
  assert.equal(overview, await help());
  const names = [...overview.matchAll(/^ {2}([a-z]+) /gm)].map(([, name = '']) => name);
  const helps = await Promise.all(names.map((name) => help(name)));
  const told = helps.map((text, i) => `\n\n==== ${names[i] ?? ''}\n${text}`);
  const text = overview + told.join('');
  const wide = text.split('\n').filter((line) => line.length > 80);
  assert.deepEqual(wide, [], 'a terminal of 80 columns breaks these lines');
  assertGolden(t, 'commands.prose.txt', text);
});

const programTexts = () =>
  globSync('src/**/*.ts', { cwd: root }).map((file) => readFileSync(join(root, file), 'utf8'));

test('log: a cause is called reason in every line', () => {
  const lines = programTexts().flatMap((text) =>
    [...text.matchAll(/\blog\??\.(?:debug|info|warn|error)\(\s*'[^']+',\s*(\{[^}]*\})/gi)].map(
      ([, fields = '']) => fields,
    ),
  );
  assert.ok(lines.length > 20);
  assert.deepEqual(
    lines.filter((fields) => /[{,]\s*why\s*[,:}]/.test(fields)),
    [],
  );
});

test('log: events and their levels', (t) => {
  const files = programTexts();
  const events = files.flatMap((text) =>
    [...text.matchAll(/\blog\??\.(debug|info|warn|error)\(\s*'([^']+)'/gi)].map(
      ([, level = '', event = '']) => `${event}: ${level}\n`,
    ),
  );
  assertGolden(t, 'log-events.txt', [...new Set(events)].toSorted().join(''));
});

function readJson(text: string): Json {
  const value = tryParse(text);
  if (value === undefined) throw new Error(`no JSON: ${text.slice(0, 100)}`);
  return value;
}

async function admin(path: string, accept = '*/*'): Promise<string> {
  const headers = { authorization: `Bearer ${adminToken}`, accept };
  return (await fetch(rig.gateway.adminUrl + path, { headers })).text();
}

/** What `help` prints, without a process. */
async function help(...args: readonly string[]): Promise<string> {
  const { out, err } = await run(helpCommand(await loadCommands()), args);
  assert.equal(err, '');
  return out;
}

async function program(...args: readonly string[]): Promise<string> {
  const argv = ['--disable-warning=ExperimentalWarning', join(root, 'src/main.ts'), ...args];
  const { stdout } = await promisify(execFile)(process.execPath, argv, {
    env: { ...process.env, NO_COLOR: '1' },
  });
  return stdout;
}

/** Labels whose values are names of this test or of this machine. */
const named =
  /^(le|key|team|tag|name|per|model|upstream_model|provider|target|credential|origin|node|version|gen_ai_.+)$/;

interface FamilyText {
  readonly form: string;
  readonly help: string;
}

function familiesOf(text: string): readonly FamilyText[] {
  return text
    .split(/^(?=# HELP )/m)
    .filter((part) => part.startsWith('# HELP '))
    .map((part) => {
      const [, name = '', help = ''] = /^# HELP (\S+) (.*)/.exec(part) ?? [];
      const type = /^# TYPE \S+ (\S+)/m.exec(part)?.[1] ?? '';
      const unit = /^# UNIT \S+ (\S+)/m.exec(part)?.[1];
      const values = new Map<string, Set<string>>();
      for (const [, labels = ''] of part.matchAll(/^\w+\{(.*?)\} /gm)) {
        for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
          const seen = values.get(label) ?? new Set();
          values.set(label, seen.add(value));
        }
      }
      const labels = [...values].map(([label, seen]) =>
        named.test(label) ? label : `${label}=${[...seen].toSorted().join('|')}`,
      );
      const form = [name, type, ...(unit === undefined ? [] : [unit]), ...labels.toSorted()].join(
        ' ',
      );
      return { form, help: `${name}: ${help}` };
    })
    .toSorted((a, b) => (a.form < b.form ? -1 : 1));
}
