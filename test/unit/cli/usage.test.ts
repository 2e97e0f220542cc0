import assert from 'node:assert/strict';
import { it } from 'node:test';
import { modelsCommand as makeModelsCommand } from '../../../src/cli/commands/models.ts';
import { usageCommand } from '../../../src/cli/commands/usage.ts';
import { tryParse } from '../../../src/json/parse.ts';
import { isObject } from '../../../src/json/value.ts';
import { costing } from '../../store/rows.ts';
import { callRow, day } from '../store/call-rows.ts';
import { cliRig, type CliRig } from './cli-rig.ts';

const modelsCommand = makeModelsCommand({
  remove: async (name) => ({ id: `local/${name}`, bytes: 1_600_000 }),
});

function record(rig: CliRig, keyId = 'k1'): void {
  const now = rig.clock.wall();
  rig.ledger.record(callRow('c1', { startedAt: now, keyId, model: '=cmd|calc' }));
  rig.ledger.record(callRow('c2', { startedAt: now, keyId, model: 'a "b", c' }));
  rig.ledger.record(callRow('c3', { startedAt: now - 8 * day, keyId, model: 'old' }));
}

it('usage --json gives rows with the grouping column and the sums', async (t) => {
  const rig = await cliRig(t);
  const { id } = await rig.keys.create({ name: 'ci', models: ['*'] });
  record(rig, id);
  const ran = await rig.run(usageCommand, ['--json', '--since', '7d']);
  assert.deepEqual([ran.code, ran.err], [0, '']);
  assert.deepEqual(tryParse(ran.out), [
    {
      key: id,
      key_name: 'ci',
      calls: 2,
      failed: 0,
      failed_limit: 0,
      failed_client: 0,
      failed_provider: 0,
      failed_gateway: 0,
      input_tokens: 20,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      output_tokens: 10,
      cost_usd: null,
      unpriced_calls: 2,
      audio_input_tokens: 0,
      image_input_tokens: 0,
      video_input_tokens: 0,
      audio_output_tokens: 0,
      image_output_tokens: 0,
      web_searches: 0,
      images: 0,
    },
  ]);
  for (const by of ['key', 'model', 'answered', 'provider', 'team', 'tag', 'day', 'hour']) {
    const rows = tryParse((await rig.run(usageCommand, ['--by', by, '--json'])).out);
    assert.ok(Array.isArray(rows) && rows.length > 0);
    for (const row of rows) assert.ok(isObject(row) && by in row && 'calls' in row, by);
  }
});

it('usage prints an aligned table with a total; unknown cost is no number', async (t) => {
  const rig = await cliRig(t);
  assert.equal((await rig.run(usageCommand, [])).out, 'There are no calls in this period.\n');
  record(rig);
  const { out } = await rig.run(usageCommand, ['--by', 'model', '--since', '2w']);
  const lines = out.trimEnd().split('\n');
  assert.deepEqual(
    lines.map((line) => line.trim().split(/ {2,}/)),
    [
      [
        'MODEL',
        'CALLS',
        'FAILED',
        'FAILED %',
        'INPUT TOKENS',
        'CACHE READ TOKENS',
        'CACHE WRITE TOKENS',
        'OUTPUT TOKENS',
        'COST USD',
        'UNPRICED CALLS',
      ],
      ['=cmd|calc', '1', '0', '0.0%', '10', '0', '0', '5', '-', '1'],
      ['a "b", c', '1', '0', '0.0%', '10', '0', '0', '5', '-', '1'],
      ['old', '1', '0', '0.0%', '10', '0', '0', '5', '-', '1'],
      ['total', '3', '0', '0.0%', '30', '0', '0', '15', '-', '3'],
    ],
  );
  assert.equal(new Set(lines.map((line) => line.length)).size, 1);
});

it('F6 calls that were refused do not make an unknown cost 0', async (t) => {
  const rig = await cliRig(t);
  const startedAt = rig.clock.wall();
  rig.ledger.record(callRow('c1', { startedAt, model: 'a', provider: 'up' }));
  const refused = { startedAt, model: 'a', charged: {}, ...costing(0) };
  rig.ledger.record(callRow('c2', { ...refused, outcome: 'failed' }));
  for (const by of ['model', 'provider']) {
    const { out } = await rig.run(usageCommand, ['--by', by]);
    const last = out.trimEnd().split('\n').at(-1) ?? '';
    const cells = last.trim().split(/ {2,}/);
    assert.deepEqual(cells.slice(-2), ['-', '1'], by);
    assert.deepEqual(cells.slice(1, 4), ['2', '1', '50.0%'], by);
  }
  const { out } = await rig.run(usageCommand, ['--json', '--by', 'model']);
  const rows = tryParse(out);
  const row: unknown = Array.isArray(rows) ? rows[0] : undefined;
  assert.ok(isObject(row));
  assert.deepEqual([row['cost_usd'], row['unpriced_calls'], row['calls']], [null, 1, 2]);
});

it('usage --by tag adds each call up once, however many tags it has', async (t) => {
  const rig = await cliRig(t);
  const startedAt = rig.clock.wall();
  rig.ledger.record(callRow('c1', { startedAt, tags: ['x', 'y', 'z'], ...costing(5) }));
  rig.ledger.record(callRow('c2', { startedAt, tags: ['x'], ...costing(7) }));
  const { out } = await rig.run(usageCommand, ['--by', 'tag']);
  const last = out.trimEnd().split('\n').at(-1) ?? '';
  const cells = last.trim().split(/ {2,}/);
  assert.deepEqual([cells[0], cells[1], cells.at(-2)], ['total', '2', '0.000000012']);
});

it('F6 usage adds what is known exactly, and counts what has no price beside it', async (t) => {
  const rig = await cliRig(t);
  const startedAt = rig.clock.wall();
  const cost = (total: number) => ({ startedAt, ...costing(total) });
  rig.ledger.record(callRow('c1', { ...cost(100_000_001), model: 'a', team: 'red' }));
  rig.ledger.record(callRow('c2', { ...cost(200_000_002), model: 'b', tags: ['x'] }));
  rig.ledger.record(callRow('c3', { startedAt, model: 'c', tags: ['x', 'y'] }));
  const { out } = await rig.run(usageCommand, ['--by', 'model']);
  const lines = out.trimEnd().split('\n');
  assert.deepEqual(
    lines.slice(1).map((line) => line.trim().split(/ {2,}/).slice(-2)),
    [
      ['0.100000001', '0'],
      ['0.200000002', '0'],
      ['-', '1'],
      ['0.300000003', '1'],
    ],
  );
  const rows = async (...args: string[]): Promise<unknown> => {
    const found = tryParse((await rig.run(usageCommand, ['--json', ...args])).out);
    assert.ok(Array.isArray(found));
    return found.map(
      (row) => isObject(row) && ['tag' in row ? row['tag'] : row['key'], row['calls']],
    );
  };
  assert.deepEqual(await rows('--by', 'tag'), [
    [null, 1],
    ['x', 2],
    ['y', 1],
  ]);
  assert.deepEqual(await rows('--team', 'red'), [['k1', 1]]);
  assert.deepEqual(await rows('--tag', 'x', '--model', 'b'), [['k1', 1]]);
  assert.deepEqual(await rows('--until', '1h'), []);
});

it('S12 usage --csv quotes fields and disarms formulas', async (t) => {
  const rig = await cliRig(t);
  record(rig);
  const { out } = await rig.run(usageCommand, ['--by', 'model', '--csv', '--since', '1d']);
  assert.equal(
    out,
    [
      'model,calls,failed,failed_limit,failed_client,failed_provider,failed_gateway,input_tokens,cache_read_tokens,cache_write_tokens,output_tokens,cost_usd,unpriced_calls,audio_input_tokens,image_input_tokens,video_input_tokens,audio_output_tokens,image_output_tokens,web_searches,images',
      `'=cmd|calc,1,0,0,0,0,0,10,0,0,5,,1,0,0,0,0,0,0,0`,
      '"a ""b"", c",1,0,0,0,0,0,10,0,0,5,,1,0,0,0,0,0,0,0',
      '',
    ].join('\r\n'),
  );
});

it('a mistake in usage or models names the flag, exit 2', async (t) => {
  const rig = await cliRig(t);
  const mistakes: readonly (readonly [readonly string[], RegExp])[] = [
    [['--by', 'colour'], /^--by: must be one of key, model/],
    [['--since', 'yesterday'], /^--since: give a span/],
    [['--until', 'tomorrow'], /^--until: give a span/],
    [['--json', '--csv'], /--csv and --json/],
    [['today'], /today: unexpected/],
  ];
  for (const [args, text] of mistakes) {
    const ran = await rig.run(usageCommand, args);
    assert.deepEqual([ran.code, ran.out], [2, ''], args.join(' '));
    assert.match(ran.err, text);
  }
  const ran = await rig.run(modelsCommand, ['--csv']);
  assert.equal(ran.code, 2);
  assert.match(ran.err, /--csv is not a flag/);
});

it('models lists names, targets and health', async (t) => {
  const models = [
    {
      id: 'fast',
      targets: [
        { target: 'openai/gpt-5-mini', health: 'healthy' },
        { target: 'vllm/qwen3', health: 'degraded: rate limited until 2030-01-01T00:00:03Z' },
      ],
    },
    { id: 'local/tiny', targets: [{ target: 'local/tiny', health: 'healthy' }] },
  ];
  const rig = await cliRig(t, { models: async () => models });
  const table = await rig.run(modelsCommand, []);
  assert.deepEqual(
    table.out
      .trimEnd()
      .split('\n')
      .map((line) => line.trim().split(/ {2,}/)),
    [
      ['MODEL', 'TARGET', 'HEALTH'],
      ['fast', 'openai/gpt-5-mini', 'healthy'],
      ['vllm/qwen3', 'degraded: rate limited until 2030-01-01T00:00:03Z'],
      ['local/tiny', 'local/tiny', 'healthy'],
    ],
  );
  const unknown = { max_input_tokens: null, max_tokens: null };
  assert.deepEqual(
    tryParse((await rig.run(modelsCommand, ['--json'])).out),
    models.map((model) => ({ ...unknown, ...model })),
  );
});

it('usage and models have --help', async (t) => {
  const rig = await cliRig(t);
  for (const command of [usageCommand, modelsCommand]) {
    const ran = await rig.run(command, ['--help']);
    assert.deepEqual([ran.code, ran.out, ran.err], [0, command.help, '']);
  }
});
