/** `status`, `tail`, `errors` and `init`. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { connectCommand } from '../../../src/cli/commands/connect.ts';
import { errorsCommand } from '../../../src/cli/commands/errors.ts';
import { initCommand } from '../../../src/cli/commands/init.ts';
import { keysCommand } from '../../../src/cli/commands/keys.ts';
import { statusCommand } from '../../../src/cli/commands/status.ts';
import { CallCauses } from '../../../src/cli/call-causes.ts';
import { tailCommand } from '../../../src/cli/commands/tail.ts';
import { usageCommand } from '../../../src/cli/commands/usage.ts';
import { loadSettings } from '../../../src/config/load.ts';
import { knownProviders } from '../../../src/compose/providers.ts';
import { tryParse, tryParseObject } from '../../../src/json/parse.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { run } from '../cli-config/context.ts';
import { callRow } from '../store/call-rows.ts';
import { cliRig } from './cli-rig.ts';

test('status says what runs and how providers are, and its exit code whether it is ready', async (t) => {
  const about = {
    ready: true,
    version: '1.2.3',
    pid: 42,
    admin_url: 'http://127.0.0.1:8687',
    providers: 'openai,up,local',
    live_calls: 2,
    calls_shed: 0,
    data_dir: '/d',
  };
  const refused = 'down: until 2026-11-27T15:43:21Z (upstream_auth)';
  const health = new Map([
    ['openai', refused],
    ['up', 'healthy'],
  ]);
  const provider = { address: '', origin: '', credentials: [] };
  const rig = await cliRig(t, {
    status: () => about,
    providers: () => [
      ...['openai', 'up', 'local'].map((id) => ({ ...provider, id, there: true })),
      { ...provider, id: 'ollama', there: false },
    ],
    providerHealth: async () => (id) => health.get(id),
  });
  const { code, out } = await rig.run(statusCommand, []);
  assert.equal(code, 0);
  assert.match(out, /^version +1\.2\.3$/m);
  assert.match(out, /^process +42$/m);
  assert.match(out, /^admin plane +http:\/\/127\.0\.0\.1:8687$/m);
  assert.match(
    out,
    /^providers +openai: down: until \S+ \(upstream_auth\)\n +up: healthy\n +local: unknown$/m,
  );
  assert.match(out, /^running calls +2$/m);
  assert.match(out, /^data +\/d$/m);
  assert.doesNotMatch(out, /shed|ollama/);
  assert.deepEqual(tryParseObject((await rig.run(statusCommand, ['--json'])).out), {
    ...about,
    provider_health: { openai: refused, up: 'healthy', local: 'unknown' },
  });
  const stopped = await cliRig(t, { status: () => ({ ready: false, why: 'no gateway runs' }) });
  assert.deepEqual(await stopped.run(statusCommand, []), {
    code: 1,
    out: '',
    err: 'no gateway runs\n',
  });
});

test('tail prints calls, the oldest first, and as objects', async (t) => {
  const rig = await cliRig(t);
  assert.deepEqual(await rig.run(tailCommand, ['--no-follow']), {
    code: 0,
    out: '',
    err: 'There are no such calls yet.\n',
  });
  const now = rig.clock.wall();
  rig.ledger.record(callRow('c1', { startedAt: now - 2000, model: 'fast' }));
  rig.ledger.record(callRow('c2', { startedAt: now - 1000, model: 'slow\u001b[31m' }));
  const { code, out } = await rig.run(tailCommand, ['--no-follow']);
  assert.equal(code, 0);
  const lines = out.trimEnd().split('\n');
  assert.equal(lines.length, 2);
  assert.match(
    lines[0] ?? '',
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*Z {2}\S+ ok .* fast .*\d+ in, \d+ out .* ms$/,
  );
  assert.match(lines[1] ?? '', /slow\?\[31m/);
  const last = await rig.run(tailCommand, ['--no-follow', '--lines', '1', '--json']);
  assert.equal(tryParseObject(last.out)?.['id'], 'c2');
  assert.match((await rig.run(tailCommand, ['--lines', 'x'])).err, /--lines: give a number/);
});

test('a --key that names no key is told from a key without calls', async (t) => {
  const rig = await cliRig(t);
  const made = await rig.run(keysCommand, ['create', '--name', 'ana', '--models', '*', '--json']);
  const id = String(tryParseObject(made.out)?.['id']);
  const commands = [
    { command: usageCommand, args: [] },
    { command: errorsCommand, args: [] },
    { command: tailCommand, args: ['--no-follow'] },
  ];
  for (const { command, args } of commands) {
    const asked = (key: string) => rig.run(command, [...args, '--key', key]);
    assert.match(
      (await asked('nope')).err,
      /^There is no key with the id nope\. "model-gateway keys list" has/,
    );
    assert.equal((await asked('ana')).err, `--key takes an id: the name ana belongs to ${id}.\n`);
    assert.doesNotMatch((await asked(id)).err, /id/);
    assert.doesNotMatch((await asked('playground')).err, /id/);
  }
});

/** @param answers undefined among them: the question is left by Ctrl-C */
function initIn(answers?: readonly (string | undefined)[]) {
  const cwd = temporaryFolder('init');
  const waiting = [...(answers ?? [])];
  const known = [
    { id: 'openai', keyVariable: 'OPENAI_API_KEY' },
    { id: 'anthropic', keyVariable: 'ANTHROPIC_API_KEY' },
  ];
  const asked: string[] = [];
  const answer = (question: string): Promise<string | undefined> => {
    asked.push(question);
    return Promise.resolve(waiting.length === 0 ? '' : waiting.shift());
  };
  const ask = answers === undefined ? undefined : answer;
  const command = initCommand({ known, schema: '/s.json', cwd, program: 'gw', ask });
  return { cwd, command, asked, text: () => readFileSync(join(cwd, 'gateway.yaml'), 'utf8') };
}

test('init writes a file that is valid, and changes none', async () => {
  const env = { OPENAI_API_KEY: 'sk-1' };
  const { cwd, command, text } = initIn();
  const made = await run(command, [], env);
  assert.equal(made.code, 0, made.err);
  assert.match(made.out, /^Wrote gateway\.yaml\. Next: gw check /);
  assert.match(
    made.out,
    /\nA gateway that runs in this folder without a config applies it at once; listen applies at the next start\.\n$/,
  );
  const settings = await loadSettings({ flags: {}, env, cwd, knownProviders });
  assert.deepEqual(
    settings.providers.map(({ id }) => id),
    ['openai'],
  );
  assert.match(text(), /^# yaml-language-server: \$schema=\/s\.json$/m);
  const before = text();
  const again = await run(command, ['--providers', 'anthropic'], env);
  assert.equal(again.code, 2);
  assert.match(again.err, /gateway\.yaml exists and stays as it is/);
  assert.equal(text(), before);
  // What is commented out is valid, too.
  const all = before
    .replace(/^# (?=providers:|models:|storage:|admin_listen:)/gm, '')
    .replace(/^# {3}/gm, '  ');
  const other = initIn();
  writeFileSync(join(other.cwd, 'gateway.yaml'), all);
  const more = { ...env, ANTHROPIC_API_KEY: 'k', TEAM_VLLM_KEY: 'k' };
  const whole = await loadSettings({ flags: {}, env: more, cwd: other.cwd, knownProviders });
  assert.deepEqual(
    [whole.providers, whole.routes].map((list) => list.length),
    [2, 2],
    all,
  );
});

test('init names the file in what comes next, and refuses what no gateway would take', async () => {
  const { cwd, command } = initIn();
  const named = await run(command, ['--file', 'my own.yaml'], {});
  assert.equal(
    named.out,
    "Wrote my own.yaml. Next: gw check --config 'my own.yaml' shows what it sets, gw start --config 'my own.yaml' uses it.\n",
  );
  const address = await run(command, ['--listen', 'nonsense'], {});
  assert.equal(address.code, 2);
  assert.match(address.err, /^--listen: nonsense is not an address\. Use HOST:PORT/);
  assert.equal(existsSync(join(cwd, 'gateway.yaml')), false);
  await assert.rejects(
    run(command, ['--file', 'no/folder.yaml'], {}),
    /^Error: no\/folder\.yaml cannot be written \(ENOENT\)\. Choose another place with --file\.$/,
  );
  symlinkSync('gone.yaml', join(cwd, 'gateway.yaml'));
  assert.match((await run(command, [], {})).err, /gateway\.yaml exists and stays as it is/);
});

test('init asks what the flags do not say, and refuses vendors that it does not know', async () => {
  const { command, text } = initIn([' anthropic, openai ', '']);
  assert.equal((await run(command, [], {})).code, 0);
  assert.match(
    text(),
    /^ {2}anthropic: \{\} +# its key: ANTHROPIC_API_KEY, not set in this shell$/m,
  );
  assert.match(text(), /^ {2}openai: \{\} /m);
  assert.match(text(), /^listen: "127\.0\.0\.1:8686" /m);
  const wrong = await run(initIn().command, ['--providers', 'opnai', '--yes'], {});
  assert.equal(wrong.code, 2);
  assert.match(wrong.err, /opnai is not a known vendor\. Did you mean "openai"\?/);
  const other = await run(initIn().command, ['--providers', 'zzz', '--yes'], {});
  assert.match(other.err, /zzz is not a known vendor\. Known: openai, anthropic\./);
  // At a terminal it asks again before it asks anything else.
  const again = initIn(['opnai', 'openai', '127.0.0.1:9000']);
  assert.equal((await run(again.command, [], {})).code, 0);
  assert.match(again.text(), /^ {2}openai: \{\} /m);
  assert.match(again.text(), /^listen: "127\.0\.0\.1:9000" /m);
  assert.equal(again.asked.length, 3);
  assert.match(
    again.asked[1] ?? '',
    /^opnai is not a known vendor\. Did you mean "openai"\?\nProviders/,
  );
  const left = initIn(['openai', undefined]);
  assert.deepEqual(await run(left.command, [], {}), {
    code: 130,
    out: '',
    err: '\nNothing was written.\n',
  });
  assert.ok(!existsSync(join(left.cwd, 'gateway.yaml')));
});

test('A4 tail and errors say why calls failed', async (t) => {
  const rig = await cliRig(t);
  const message = 'The price of openai/gpt-9 is not known.';
  const failure = { fault: 'limit', reason: 'price_unknown', message } as const;
  const row = { outcome: 'failed', status: 400, error: 'invalid_request', failure } as const;
  rig.ledger.record(callRow('c1', { startedAt: rig.clock.wall() - 1, ...row }));
  const tail = await rig.run(tailCommand, ['--no-follow', '--fault', 'limit']);
  assert.match(tail.out, /400 invalid_request .*\n {4}limit, price_unknown: The price of openai/);
  assert.equal((await rig.run(tailCommand, ['--no-follow', '--fault', 'client'])).out, '');
  const { out } = await rig.run(errorsCommand, ['--since', '1h']);
  assert.match(out, /^CALLS +FAULT +ERROR +REASON +STATUS/);
  assert.match(out, /\n1 +limit +invalid_request +price_unknown +400 .* c1 +The price of openai/);
  const narrow = await rig.run(errorsCommand, [], { colour: false, columns: 60 });
  assert.match(narrow.out, /^ERROR +invalid_request\nREASON +price_unknown\n/m);
  assert.match(narrow.out, /^CAUSE +The price of openai\/gpt-9 is not known\.$/m);
  const byKey = await rig.run(errorsCommand, ['--by', 'key', '--since', '1h', '--json']);
  assert.partialDeepStrictEqual(tryParse(byKey.out), [{ name: 'k1', calls: 1, failed_limit: 1 }]);
  const none = await rig.run(errorsCommand, ['--fault', 'gateway']);
  assert.equal(none.out, 'No calls failed in this period.\n');
});

test('A4 tail and errors name the key, whose limit refused, and what the provider said', async (t) => {
  const rig = await cliRig(t);
  const { id: key } = (await rig.keys.create({ name: 'ana', models: ['*'] })).record;
  const now = rig.clock.wall();
  const toldToClient = 'The provider refused the credentials of the gateway.';
  const said = 'Incorrect API key provided: sk-***.';
  const auth = { outcome: 'failed', status: 502, error: 'upstream_auth' } as const;
  rig.ledger.record(
    callRow('c1', {
      startedAt: now - 2,
      keyId: key,
      ...auth,
      failure: { fault: 'provider', message: toldToClient },
      attemptRows: [
        {
          provider: 'openai',
          upstreamModel: 'gpt-5',
          startedAt: now - 2,
          ms: 1,
          ...auth,
          status: 401,
          failure: { fault: 'provider', message: said },
        },
      ],
    }),
  );
  rig.ledger.record(
    callRow('c2', {
      startedAt: now - 1,
      keyId: key,
      outcome: 'failed',
      status: 429,
      error: 'rate_limited',
      attempts: 0,
      failure: { fault: 'limit', message: 'Too many requests.', limit: `key:${key}:requests` },
    }),
  );
  const tail = (await rig.run(tailCommand, ['--no-follow'])).out;
  assert.match(
    tail,
    / {2}ana {2}local\/tiny.*\n {4}provider: Incorrect API key provided: sk-\*{3}\.\n/,
  );
  assert.match(tail, /\n {4}limit: key ana, requests: Too many requests\.\n$/);
  assert.ok(!tail.includes(toldToClient) && !tail.includes(key), tail);
  const byError = (await rig.run(errorsCommand, [])).out;
  assert.match(byError, /c1 +Incorrect API key provided: sk-\*{3}\.$/m);
  assert.match(byError, /c2 +key ana, requests: Too many requests\.$/m);
  const byLimit = (await rig.run(errorsCommand, ['--by', 'limit', '--fault', 'limit'])).out;
  assert.match(byLimit, /^1 +key ana, requests +/m);
});

test('A4 a call whose details cannot be had is reported by the message of its row', async () => {
  const causes = new CallCauses({
    request: () => Promise.resolve({ status: 503, body: {} }),
  });
  const row = { id: 'c1', attempts: 1, message: 'The provider failed.' };
  assert.equal(await causes.sentence(row), 'The provider failed.');
});

test('a wrong action or model is answered with the one that was probably meant', async (t) => {
  const wrong = await run(keysCommand, ['crate']);
  assert.equal(wrong.code, 2);
  assert.match(wrong.err, /^crate: unknown keys command\. Did you mean "create"\?\n/);
  assert.match(
    (await run(keysCommand, ['zzzzzz'])).err,
    /unknown keys command\. Give create, list, /,
  );
  const provider = { address: '', origin: '', credentials: [] };
  const rig = await cliRig(t, {
    models: async () => [{ id: 'sonnet', targets: [] }],
    providers: () => [{ ...provider, id: 'openai', there: true }],
  });
  const notes = async (model: string): Promise<string> =>
    (await rig.run(connectCommand, ['curl', '--model', model])).err;
  assert.match(
    await notes('sonet'),
    /^note: this gateway has no model sonet \(did you mean "sonnet"\?\); model-gateway models lists/,
  );
  for (const known of ['sonnet', 'openai/unlisted']) {
    assert.doesNotMatch(await notes(known), /has no model/);
  }
});
