import assert from 'node:assert/strict';
import { it } from 'node:test';
import { modelsCommand } from '../../../src/cli/commands/models.ts';
import {
  pullCommand,
  type PullEvents,
  type PullReport,
  type PullOptions,
} from '../../../src/cli/commands/pull.ts';
import { tryParse } from '../../../src/json/parse.ts';
import { isObject } from '../../../src/json/value.ts';
import { knownModels } from '../../../src/local-models/model-folder.ts';
import { HeldClock } from '../access/fakes.ts';
import { cliRig } from './cli-rig.ts';

const report: PullReport = {
  id: 'local/small',
  path: '/data/models/small.gguf',
  sizeBytes: 639_446_688,
  sha256: 'a'.repeat(64),
  verified: 'server',
  source: 'hf:acme/small-GGUF:Q8_0',
  already: false,
  about: {
    size_bytes: 639_446_688,
    parameters: 596_049_920,
    quantization: 'Q8_0',
    architecture: 'qwen3',
    context: 8192,
    trained_context: 40_960,
    chat_template: true,
    demonstration: false,
  },
  warnings: [],
  gateway: 'knows it',
};

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly pulls: readonly PullOptions[];
}

async function run(
  args: readonly string[],
  more: {
    readonly events?: (events: PullEvents, clock: HeldClock) => void;
    readonly report?: Partial<PullReport>;
    readonly terminalColumns?: number;
  } = {},
): Promise<Ran> {
  const clock = new HeldClock();
  const pulls: PullOptions[] = [];
  let [out, err] = ['', ''];
  const command = pullCommand({
    known: knownModels,
    clock,
    pull: (options, events) => {
      pulls.push(options);
      more.events?.(events, clock);
      return Promise.resolve({ ...report, ...more.report });
    },
  });
  const unused = (): never => assert.fail('pull asks no gateway itself');
  const code = await command.run(args, {
    stdout: (text) => void (out += text),
    stderr: (text) => void (err += text),
    env: {},
    admin: unused,
    gatewayUrl: unused,
    ...(more.terminalColumns === undefined ? {} : { terminalColumns: more.terminalColumns }),
  });
  return { code, out, err, pulls };
}

it('§4 pull says what came, and that it can be called', async () => {
  const ran = await run(['hf:acme/small-GGUF:Q8_0', '--name', 'small', '--sha256', 'a'.repeat(64)]);
  assert.equal(ran.code, 0);
  assert.deepEqual(ran.pulls, [
    { source: 'hf:acme/small-GGUF:Q8_0', name: 'small', sha256: 'a'.repeat(64) },
  ]);
  assert.match(ran.out, /local\/small\n/);
  assert.match(ran.out, /596M parameters, qwen3, Q8_0, 639 MB\n/);
  assert.match(ran.out, /8192 tokens \(trained for 40960\)/);
  assert.match(ran.out, /as the server named it/);
  assert.match(ran.out, /It can be called now\.\n$/);
  const stopped = await run(['x.gguf'], { report: { gateway: 'not running', already: true } });
  assert.match(stopped.out, /already present/);
  assert.match(stopped.out, /once the gateway runs/);
});

it('§4 pull --json gives one object with stable members; progress and warnings go to stderr', async () => {
  const ran = await run(['x.gguf', '--json'], {
    events: (events) => events.progress('fetching', 10, 10),
    report: { warnings: ['no template'] },
  });
  const value = tryParse(ran.out);
  assert.ok(isObject(value));
  assert.deepEqual(Object.keys(value).sort(), [
    'already',
    'architecture',
    'chat_template',
    'context',
    'demonstration',
    'gateway',
    'id',
    'parameters',
    'path',
    'quantization',
    'sha256',
    'size_bytes',
    'source',
    'trained_context',
    'verified',
    'warnings',
  ]);
  assert.match(ran.err, /fetching: 100 %/);
  assert.match(ran.err, /warning: no template/);
});

it('§4 without a terminal: a line at each tenth, no control characters', async () => {
  const ran = await run(['x.gguf'], {
    events: (events) => {
      for (let bytes = 0; bytes <= 1000; bytes += 10) events.progress('fetching', bytes * 1e6, 1e9);
      events.note('cut\u001B[2J');
    },
  });
  const lines = ran.err.trimEnd().split('\n');
  assert.equal(lines.length, 12);
  assert.equal(lines[0], 'fetching: 0 %  0 B of 1.00 GB');
  assert.equal(lines[5], 'fetching: 50 %  500 MB of 1.00 GB');
  assert.equal(lines[11], 'cut?[2J');
});

it('§4 on a terminal: one line with bar, rate and time left, never wider than the terminal', async () => {
  const ran = await run(['x.gguf'], {
    terminalColumns: 60,
    events: (events, clock) => {
      for (let second = 0; second <= 3; second += 1) {
        events.progress('fetching', second * 1e8, 1e9);
        clock.time += 1000;
      }
      events.note('cut');
      events.progress('fetching', 4e8, 1e9);
    },
  });
  assert.match(ran.err, /\rfetching {2}30 % {2}300 MB of 1\.00 GB {2}100 MB\/s {2}7 s left/);
  for (const line of ran.err.split(/[\r\n]/)) {
    assert.ok(line.replace('\u001B[K', '').length < 60, line);
  }
  assert.match(ran.err, /\ncut\n\r/);
  assert.ok(ran.err.endsWith('\n'));
  const wide = await run(['x.gguf'], {
    terminalColumns: 120,
    events: (events, clock) => {
      events.progress('fetching', 0, 1e9);
      clock.time += 1000;
      events.progress('fetching', 1e8, 1e9);
    },
  });
  assert.match(wide.err, /\[#\.{15}\] {2}10 % .* {2}100 MB\/s {2}9 s left/);
});

it('§4 pull --list: models with size and licence, marked as not checked', async () => {
  const ran = await run(['--list']);
  assert.equal(ran.code, 0);
  for (const { source, licence } of knownModels) {
    assert.ok(ran.out.includes(source) && ran.out.includes(licence), source);
  }
  assert.match(ran.out, /are not verified/);
  const list = tryParse((await run(['--list', '--json'])).out);
  assert.ok(Array.isArray(list) && list.length === knownModels.length);
  for (const entry of list) assert.ok(isObject(entry) && entry['verified_here'] === false);
});

it('§4 mistakes of pull end in exit code 2 with the flag', async () => {
  for (const [args, text] of [
    [[], /SOURCE is missing/],
    [['a', 'b'], /b: unexpected/],
    [['a', '--sha'], /--sha is not a flag/],
    [['--list', 'a'], /a: unexpected/],
    [['--list', '--name', 'x'], /--list cannot be combined/],
  ] as const) {
    const ran = await run(args);
    assert.deepEqual([ran.code, ran.out, ran.pulls], [2, '', []], args.join(' '));
    assert.match(ran.err, text);
  }
  assert.match((await run(['--help'])).out, /^Usage: model-gateway pull SOURCE/);
});

it('§4 models shows what runs here with size, parameters and context, and what was omitted', async (t) => {
  const rig = await cliRig(t, {
    models: async () => [
      {
        id: 'local/tiny',
        targets: [{ target: 'local/tiny', health: 'healthy' }],
        local: { ...report.about, size_bytes: 1_622_528, demonstration: true },
      },
      { id: 'gpt', targets: [{ target: 'openai/gpt-5-mini', health: 'unknown' }] },
    ],
    modelProblems: () => [{ subject: 'broken.gguf', why: 'is not a GGUF file' }],
  });
  const removed: string[] = [];
  const command = modelsCommand({
    remove: (name) => {
      removed.push(name);
      return Promise.resolve({ id: `local/${name}`, bytes: 639_446_688 });
    },
  });
  const ran = await rig.run(command, []);
  const rows = ran.out.trimEnd().split('\n');
  assert.deepEqual(
    rows.map((row) => row.split(/ {2,}/)),
    [
      ['MODEL', 'TARGET', 'HEALTH', 'SIZE', 'PARAMETERS', 'CONTEXT', 'QUANT'],
      [
        'local/tiny',
        'local/tiny',
        'healthy',
        '1.62 MB',
        '596M',
        '8192',
        'Q8_0',
        'demonstration model',
      ],
      ['gpt', 'openai/gpt-5-mini', 'unknown'],
    ],
  );
  assert.equal(ran.err, 'left out: broken.gguf is not a GGUF file\n');
  assert.equal(
    (await rig.run(command, ['remove', 'local/small'])).out,
    'Removed local/small (639 MB).\n',
  );
  assert.deepEqual(tryParse((await rig.run(command, ['remove', 'small', '--json'])).out), {
    id: 'local/small',
    removed: true,
    size_bytes: 639_446_688,
  });
  assert.deepEqual(removed, ['small', 'small']);
  assert.equal((await rig.run(command, ['remove'])).code, 2);
});
