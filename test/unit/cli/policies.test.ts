import assert from 'node:assert/strict';
import { it } from 'node:test';
import { keysCommand } from '../../../src/cli/commands/keys.ts';
import { tagsCommand, teamsCommand } from '../../../src/cli/commands/policies.ts';
import { tryParse, tryParseObject } from '../../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../../src/json/value.ts';
import { listOf, textOf } from '../admin/admin-rig.ts';
import { cliRig } from './cli-rig.ts';

function arrayOf(text: string): readonly JsonObject[] {
  const value = tryParse(text);
  return Array.isArray(value) ? value.filter((item) => isObject(item)) : [];
}

it('keys create takes limits and budget as documented', async (t) => {
  const rig = await cliRig(t);
  const made = await rig.run(keysCommand, [
    'create',
    '--name=a',
    '--models=*',
    '--rpm=60',
    '--tpm=1000',
    '--concurrent=5',
    '--limits=rpm=10:openai/*,concurrent=1:local/tiny',
    '--budget=$12.50',
    '--per=month',
    '--zone=Europe/Berlin',
    '--owner=Ada',
    '--tags=a,b',
    '--cidr=10.0.0.0/8,::1',
    '--no-shrink',
    '--json',
  ]);
  assert.deepEqual([made.code, made.err], [0, '']);
  const body = tryParseObject(made.out) ?? {};
  assert.deepEqual(
    ['rpm', 'tpm', 'concurrent', 'owner', 'tags', 'cidrs', 'shrink'].map((name) => body[name]),
    [60, 1000, 5, 'Ada', ['a', 'b'], ['10.0.0.0/8', '::1'], false],
  );
  assert.deepEqual(
    listOf(body, 'limits').filter(({ model }) => model !== null),
    [
      { kind: 'requests', amount: 10, model: 'openai/*' },
      { kind: 'concurrent', amount: 1, model: 'local/tiny' },
    ],
  );
  assert.deepEqual(body['budgets'], [{ usd: '12.5', per: 'month', time_zone: 'Europe/Berlin' }]);
  const shown = await rig.run(keysCommand, ['show', textOf(body, 'id')]);
  assert.match(shown.out, /\$0 of \$12\.5 a month \(Europe\/Berlin\)/);
  assert.match(shown.out, /10 requests per minute of openai\/\*/);
  assert.match(shown.out, /last used at +-/);
});

it('keys update changes what is said; none takes away', async (t) => {
  const rig = await cliRig(t);
  const { id, key } = await rig.keys.create({
    name: 'a',
    models: ['*'],
    team: 'red',
    strict: true,
  });
  const set = ['update', id, '--rpm', '5', '--budget', '1', '--per', 'day', '--json'];
  const first = tryParseObject((await rig.run(keysCommand, set)).out) ?? {};
  assert.deepEqual([first['rpm'], first['team'], first['strict']], [5, 'red', true]);
  const none = ['update', id, '--rpm', 'none', '--budget', 'none', '--team', 'none', '--no-strict'];
  const second = await rig.run(keysCommand, [...none, '--expires', 'never', '--models', 'x/*']);
  assert.deepEqual([second.code, second.err], [0, '']);
  assert.match(second.out, /limits +-\n$/);
  const principal = rig.keys.authenticate(undefined, key.reveal());
  assert.deepEqual(
    [principal.team, principal.strict, principal.policies(), principal.allowsModel('y')],
    [undefined, false, [], false],
  );
});

it('S5 keys rotate prints the new secret once; the old one works for the overlap', async (t) => {
  const rig = await cliRig(t);
  const { id, key: old } = await rig.keys.create({ name: 'a', models: ['*'] });
  const rotated = await rig.run(keysCommand, ['rotate', id, '--overlap', '1h']);
  const [key = ''] = rotated.out.split('\n');
  assert.match(rotated.err, /shown only now/);
  assert.match(rotated.out, /old secret until +2026-/);
  assert.equal(rotated.out.split(key).length, 2);
  assert.equal(rig.keys.authenticate(undefined, key).keyId, id);
  rig.keys.authenticate(undefined, old.reveal());
  rig.clock.time += 3_600_000;
  assert.throws(() => rig.keys.authenticate(undefined, old.reveal()));
  const now = await rig.run(keysCommand, ['rotate', id, '--overlap', '0', '--json']);
  assert.throws(() => rig.keys.authenticate(undefined, key));
  assert.equal(
    rig.keys.authenticate(undefined, textOf(tryParseObject(now.out) ?? {}, 'key')).keyId,
    id,
  );
  await assert.rejects(rig.run(keysCommand, ['rotate', 'abcdefgh']), /no key with the id/);
});

for (const [command, kind] of [
  [teamsCommand, 'team'],
  [tagsCommand, 'tag'],
] as const) {
  it(`${kind}s set, list, show and remove`, async (t) => {
    const rig = await cliRig(t);
    assert.match((await rig.run(command, ['list'])).out, new RegExp(`There are no ${kind}s`));
    const set = await rig.run(command, ['set', 'red', '--budget', '5', '--per', 'ever']);
    assert.deepEqual([set.code, set.err], [0, '']);
    assert.match(set.out, /\$0 of \$5 in total/);
    assert.equal(rig.deps.policies.find(kind, 'red')?.budgets[0]?.nanodollars, 5e9);
    const listed = arrayOf((await rig.run(command, ['list', '--json'])).out);
    assert.deepEqual(
      listed.map(({ name, source }) => [name, source]),
      [['red', 'store']],
    );
    assert.match((await rig.run(command, ['show', 'red'])).out, /^name +red\n/);
    const mistake = await rig.run(command, ['set', 'red', '--budget', '5']);
    assert.deepEqual([mistake.code, mistake.err.startsWith('--per: ')], [2, true]);
    assert.equal((await rig.run(command, ['set'])).code, 2);
    assert.equal((await rig.run(command, ['remove', 'red'])).out, 'Removed the limits of red.\n');
    await assert.rejects(rig.run(command, ['remove', 'red']), /There is no/);
    for (const action of ['list', 'show', 'set', 'remove']) {
      assert.match((await rig.run(command, [action, '--help'])).out, /^Usage: /);
    }
  });
}
