import assert from 'node:assert/strict';
import { it } from 'node:test';
import { httpAdminClient } from '../../../src/cli/admin-client.ts';
import { keysCommand } from '../../../src/cli/commands/keys.ts';
import { tryParse, tryParseObject } from '../../../src/json/parse.ts';
import { isObject } from '../../../src/json/value.ts';
import { Secret } from '../../../src/core/secret.ts';
import { textOf } from '../admin/admin-rig.ts';
import { costing } from '../../store/rows.ts';
import { freePort } from '../../support/server-process.ts';
import { callRow } from '../store/call-rows.ts';
import { cliRig } from './cli-rig.ts';

const minimal = ['create', '--name', 'ci', '--models', '*'];

it('S4 keys create prints the secret once, and it works', async (t) => {
  const rig = await cliRig(t);
  const made = await rig.run(keysCommand, minimal);
  assert.equal(made.code, 0);
  const [key = ''] = made.out.split('\n');
  const principal = rig.keys.authenticate(`Bearer ${key}`, undefined);
  assert.equal(principal.name, 'ci');
  assert.equal(made.out.split(key).length, 2);
  assert.match(made.err, /shown only now/);
  const listed = await rig.run(keysCommand, ['list']);
  const shown = await rig.run(keysCommand, ['show', principal.keyId]);
  assert.ok(!`${listed.out}${shown.out}`.includes(key.slice(12)));
});

it('keys create --json gives one object with id and key, and takes every flag', async (t) => {
  const rig = await cliRig(t);
  const made = await rig.run(keysCommand, [
    'create',
    '--name=two words',
    '--models',
    'openai/*, local/tiny',
    '--endpoints',
    'chat,count_tokens',
    '--expires',
    '30d',
    '--team',
    'red',
    '--strict',
    '--cache',
    'auto',
    '--json',
  ]);
  assert.deepEqual([made.code, made.err], [0, '']);
  const body = tryParseObject(made.out) ?? {};
  const principal = rig.keys.authenticate(undefined, textOf(body, 'key'));
  assert.equal(principal.keyId, body['id']);
  assert.equal(principal.team, 'red');
  assert.deepEqual([principal.strict, body['strict']], [true, true]);
  assert.deepEqual([principal.cache, body['cache']], ['auto', 'auto']);
  assert.equal(principal.allowsModel('openai/gpt-5'), true);
  assert.equal(principal.allowsModel('mistral/x'), false);
  assert.equal(principal.allowsEndpoint('messages'), false);
  assert.equal(body['expires_at'], new Date(rig.clock.wall() + 30 * 86_400_000).toISOString());
  const update = ['update', textOf(body, 'id'), '--json', '--cache'];
  const without = await rig.run(keysCommand, [...update, 'none']);
  assert.equal(tryParseObject(without.out)?.['cache'], null);
  const dated = await rig.run(keysCommand, [...minimal, '--expires', '2030-01-01', '--json']);
  assert.equal(tryParseObject(dated.out)?.['expires_at'], '2030-01-01T00:00:00.000Z');
});

it('keys list: a table in the order of creation, an array as JSON, all pages', async (t) => {
  const rig = await cliRig(t);
  assert.equal((await rig.run(keysCommand, ['list'])).out, 'There are no keys.\n');
  assert.equal((await rig.run(keysCommand, ['list', '--json'])).out, '[]\n');
  for (let i = 0; i < 1001; i++) await rig.keys.create({ name: `k${i}`, models: ['*'] });
  const asJson = tryParse((await rig.run(keysCommand, ['list', '--json'])).out);
  assert.ok(Array.isArray(asJson));
  assert.equal(asJson.length, 1001);
  assert.deepEqual(
    asJson.slice(0, 2).map((key) => (isObject(key) ? key['name'] : undefined)),
    ['k0', 'k1'],
  );
  const lines = (await rig.run(keysCommand, ['list'])).out.split('\n');
  assert.match(
    lines[0] ?? '',
    /^ID +NAME +STATE +LAST USED +SPENT 30D +TEAM +STRICT +EXPIRES +ENDPOINTS +MODELS +LIMITS$/,
  );
  assert.equal(lines.length, 1003);
  assert.equal(lines[0]?.indexOf('STATE'), lines[500]?.indexOf('active'));
});

it('keys list shows what each key spent; an unknown price is no number', async (t) => {
  const rig = await cliRig(t);
  const spends = await rig.keys.create({ name: 'spends', models: ['*'] });
  const unpriced = await rig.keys.create({ name: 'unpriced', models: ['*'] });
  const idle = await rig.keys.create({ name: 'idle', models: ['*'] });
  const startedAt = rig.clock.wall();
  rig.ledger.record(callRow('c1', { startedAt, keyId: spends.id, ...costing(12) }));
  rig.ledger.record(callRow('c2', { startedAt, keyId: unpriced.id }));
  const { out } = await rig.run(keysCommand, ['list']);
  const row = (id: string): string => out.split('\n').find((line) => line.startsWith(id)) ?? '';
  assert.match(row(spends.id), /active +- +\$0\.000000012 +-/);
  assert.match(row(unpriced.id), /active +- +- +-/);
  assert.match(row(idle.id), /active +- +\$0 +-/);
});

it('K8 keys revoke takes effect at once in the running gateway', async (t) => {
  const rig = await cliRig(t);
  const { id, key } = await rig.keys.create({ name: 'a', models: ['*'] });
  const revoked = await rig.run(keysCommand, ['revoke', id]);
  assert.deepEqual(revoked, { code: 0, out: `Revoked ${id}.\n`, err: '' });
  assert.throws(() => rig.keys.authenticate(undefined, key.reveal()));
  const asJson = await rig.run(keysCommand, ['revoke', id, '--json']);
  assert.equal(tryParseObject(asJson.out)?.['state'], 'revoked');
  await assert.rejects(rig.run(keysCommand, ['revoke', 'abcdefgh']), /no key with the id abcdefgh/);
  await assert.rejects(rig.run(keysCommand, ['show', 'abcdefgh']), /no key with the id abcdefgh/);
});

const mistakes: readonly (readonly [readonly string[], RegExp])[] = [
  [[], /The action is missing/],
  [['destroy'], /destroy: unknown keys command/],
  [['rotate'], /ID is missing/],
  [['rotate', 'abcdefgh', '--overlap', '8d'], /^--overlap: must be at most 7d/],
  [['update', 'abcdefgh'], /Nothing to change/],
  [['update', 'abcdefgh', '--strict', '--no-strict'], /cannot be combined/],
  [['create', '--models', '*'], /--name is missing/],
  [['create', '--name', 'a'], /--models is missing/],
  [[...minimal, '--models', 'b'], /--models is given more than once/],
  [[...minimal, '--colour', 'red'], /--colour is not a flag/],
  [[...minimal, '-x'], /-x is not a flag/],
  [[...minimal, 'extra'], /extra: unexpected argument/],
  [[...minimal, '--team'], /--team needs a value/],
  [[...minimal, '--team='], /--team has no value/],
  [[...minimal, '--json=yes'], /--json takes no value/],
  [[...minimal, '--rpm', 'x'], /^--rpm: x is not a whole number/],
  [[...minimal, '--rpm', '0'], /^--rpm: must be at least 1/],
  [[...minimal, '--tpm=1.5'], /^--tpm: 1\.5 is not a whole number/],
  [[...minimal, '--concurrent', '-1'], /--concurrent/],
  [[...minimal, '--budget', '5'], /^--per: is missing/],
  [[...minimal, '--per', 'day'], /^--per: .*no budget/],
  [[...minimal, '--budget', '5', '--per', 'year'], /^--per: must be one of day, week, month, ever/],
  [[...minimal, '--budget', '-5', '--per', 'day'], /--budget/],
  [[...minimal, '--budget', 'much', '--per', 'day'], /^--budget: is not an amount in dollars/],
  [
    [...minimal, '--budget', '0.0000000009', '--per', 'day'],
    /^--budget: is less than the smallest amount, \$0\.000000001/,
  ],
  [[...minimal, '--budget', '5', '--per', 'day', '--zone', 'Mars'], /^--zone: is not a time zone/],
  [[...minimal, '--limits', 'rpm'], /^--limits: rpm is not a limit/],
  [[...minimal, '--limits', 'rpm=5,rpm=6'], /^--limits: has duplicate entries for requests/],
  [[...minimal, '--cidr', '10.0.0.1/8'], /^--cidr: has bits after its prefix/],
  [[...minimal, '--tags', 'a b'], /^--tags: is not a tag/],
  [[...minimal, '--strict=yes'], /--strict takes no value/],
  [[...minimal, '--cache', 'long'], /^--cache: must be auto/],
  [[...minimal, '--expires', 'soon'], /^--expires: give a span/],
  [[...minimal, '--expires', '2020-01-01'], /^--expires: .*past/],
  [[...minimal, '--endpoints', 'chat,admin'], /^--endpoints: must be one of chat, messages/],
  [['create', '--name', 'a', '--models', 'a,,b'], /^--models: /],
  [['create', '--name', 'a\nb', '--models', '*'], /^--name: /],
  [['show'], /ID is missing/],
  [['revoke', 'a', 'b'], /b: unexpected argument/],
  [['revoke', 'a b'], /not a key id/],
  [['list', '--all'], /--all is not a flag/],
];

it('a mistake names the flag on stderr, makes nothing, exit 2', async (t) => {
  const rig = await cliRig(t);
  for (const [args, text] of mistakes) {
    const ran = await rig.run(keysCommand, args);
    assert.equal(ran.code, 2, args.join(' '));
    assert.equal(ran.out, '');
    assert.match(ran.err, text);
    assert.match(ran.err, /See "model-gateway keys.* --help"\.\n$/);
  }
  assert.deepEqual(rig.keys.list({ limit: 5 })?.keys, []);
});

it('S4 a key given in place of its id is not repeated', async (t) => {
  const rig = await cliRig(t);
  const { key } = await rig.keys.create({ name: 'a', models: ['*'] });
  const ran = await rig.run(keysCommand, ['revoke', key.reveal()]);
  assert.equal(ran.code, 2);
  assert.ok(!ran.err.includes(key.reveal()));
});

it('every keys command has --help, which asks nobody', async (t) => {
  const rig = await cliRig(t);
  rig.server.close();
  for (const args of [
    ['--help'],
    ['-h'],
    ['create', '--help'],
    ['list', '-h'],
    ['show', '--help'],
  ]) {
    const ran = await rig.run(keysCommand, args);
    assert.deepEqual([ran.code, ran.err], [0, '']);
    assert.match(ran.out, /^Usage: model-gateway keys .*\n(.*\n)+$/);
  }
});

it('text from outside cannot drive the terminal', async (t) => {
  const rig = await cliRig(t);
  await rig.keys.create({ name: 'a\u001b[2Jb\u202E', models: ['*'] });
  const { out } = await rig.run(keysCommand, ['list']);
  assert.match(out, /a\?\[2Jb\?/);
});

it('a gateway that does not answer, or refuses the token, is an error that says where', async (t) => {
  const rig = await cliRig(t);
  const context = (address: string, token: string) => ({
    stdout() {},
    stderr() {},
    env: {},
    admin: async () => httpAdminClient({ address, token: new Secret(token) }),
    gatewayUrl: () => Promise.resolve(undefined),
  });
  await assert.rejects(keysCommand.run(['list'], context(rig.url, 'wrong')), /admin token/);
  const closed = `http://127.0.0.1:${await freePort()}`;
  await assert.rejects(
    keysCommand.run(['list'], context(closed, 'any')),
    (error: Error) => error.message.includes(closed) && error.message.includes('ECONNREFUSED'),
  );
});

it('keys create and update note globs that match no model and no provider, and only these', async (t) => {
  const provider = { address: '', origin: '', there: true, credentials: [] };
  const rig = await cliRig(t, { providers: () => [{ id: 'openai', ...provider }] });
  const { body } = await rig.ask('/api/models');
  const [first] = Array.isArray(body['models']) ? body['models'] : [];
  const listed = textOf(isObject(first) ? first : {}, 'id');
  for (const models of ['*', 'openai/*', 'openai/any', 'op*', '*-mini', listed]) {
    const made = await rig.run(keysCommand, ['create', '--name', 'n', '--models', models]);
    assert.deepEqual([made.code, made.err.includes('note')], [0, false], models);
  }
  const args = ['create', '--name', 'n', '--models', 'gpt-*,openai/*,OpenAI/*'];
  const made = await rig.run(keysCommand, args);
  assert.equal(made.code, 0);
  assert.match(made.err, /^note: "gpt-\*", "OpenAI\/\*" match no model of this gateway now\./m);
  const id = made.out.slice(3, 11);
  const changed = await rig.run(keysCommand, ['update', id, '--models', 'opnai/gpt-5']);
  assert.match(changed.err, /^note: "opnai\/gpt-5" matches no model/m);
  const silent = await rig.run(keysCommand, [...args, '--json']);
  assert.equal(silent.err, '');
});
