/** All clients that `connect` knows, and their settings files (C4, C7). */
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { clients } from '../../../src/cli/clients/clients.ts';
import { placed } from '../../../src/cli/clients/client.ts';
import { connectCommand } from '../../../src/cli/commands/connect.ts';
import { jsonAt } from '../../../src/cli/settings-file.ts';
import type { Json } from '../../../src/json/value.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { run } from './context.ts';

const model = 'vendor/some-model';
const key = 'gw_k3y';
const where = ['--base-url', 'http://127.0.0.1:1', '--model', model];
const limits = ['--window', '98765', '--max-output', '4321'];
const able = clients.filter(({ calls }) => calls !== 'responses');
const withFiles = able.flatMap(({ name, files }) =>
  (files ?? []).map((file, at) => ({ name, file, at, several: (files?.length ?? 0) > 1 })),
);

function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Where the file of a client is in a home, and the options that make it so. */
function fileIn(root: string, { file, several }: (typeof withFiles)[number]) {
  const env = { HOME: root };
  const usual = file.path(env);
  const place = usual.startsWith('/') ? usual : join(root, usual);
  return { env, place, options: several ? [] : ['--file', place] };
}

const read = {
  json: (text: string) => jsonAt(text, []),
  yaml: (text: string): Json => parse(text),
};

describe('C7 every client', () => {
  for (const { name } of able) {
    test(`C7 ${name}: address, key and model stand in what is printed`, async () => {
      const { code, out } = await run(connectCommand, [name, ...where, '--key', key]);
      assert.equal(code, 0);
      for (const text of ['http://127.0.0.1:1', key]) assert.ok(out.includes(text), out);
      // The agent SDK's code names no model: the variables do.
      assert.ok(out.includes(model), out);
    });
  }

  /** Clients whose file or form can hold nothing but the key itself. */
  const literal = new Set(['continue', 'aider', 'roo-code', 'cursor']);
  for (const { name } of able.filter((client) => !literal.has(client.name))) {
    test(`C7 ${name}: a key that the environment holds is not printed`, async () => {
      const env = { MODEL_GATEWAY_KEY: key };
      const { code, out, err } = await run(connectCommand, [name, ...where], env);
      assert.equal(code, 0);
      assert.match(out, /MODEL_GATEWAY_KEY/);
      assert.ok(!`${out}${err}`.includes(key), out);
    });
  }

  for (const name of [
    'codex',
    'opencode',
    'kilo',
    'qwen-code',
    'crush',
    'cline',
    'roo-code',
    'claude-code-router',
  ]) {
    test(`C7 ${name} is not connected to a model that its prompts do not fit into`, async () => {
      const { code, out, err } = await run(connectCommand, [name, '--key', key]);
      assert.deepEqual([code, out], [2, '']);
      assert.match(err, /needs a larger model than local\/tiny: name one with --model NAME/);
    });
  }

  for (const name of ['claude-code', 'claude-agent-sdk', 'codex', 'opencode']) {
    test(`A11 ${name}: a context that is too small for its prompts is said`, async () => {
      const said = async (...more: readonly string[]): Promise<string> =>
        (await run(connectCommand, [name, '--base-url', 'http://127.0.0.1:1', ...more])).err;
      const tiny =
        /local\/tiny takes 2048 tokens, and .* sends longer prompts: its calls will fail/;
      const small = await said('--model', 'local/tiny');
      assert.match(small, tiny);
      assert.doesNotMatch(small, /window of local\/tiny is unknown/);
      assert.match(await said('--model', 'mine', '--window', '8192'), /mine takes 8192 tokens/);
      assert.doesNotMatch(await said('--model', 'mine', '--window', '32768'), /longer prompts/);
      assert.doesNotMatch(await said('--model', 'mine'), /longer prompts/);
    });
  }

  test('C7 --list has a line for each, with what it calls', async () => {
    const { code, out } = await run(connectCommand, ['--list']);
    assert.equal(code, 0);
    const lines = out.trimEnd().split('\n').slice(1);
    assert.deepEqual(
      lines.map((line) => line.split(' ')[0]),
      clients.map(({ name }) => name),
    );
    assert.match(out, /^codex .*responses .*lines$/m);
    assert.match(out, /^openai-agents .*responses, chat .*code$/m);
    assert.match(out, /^ai-sdk .*responses, chat, messages .*code$/m);
  });

  test('C7 libraries that call responses by default are connected so, without a switch', async () => {
    const printed = async (name: string): Promise<string> =>
      (await run(connectCommand, [name, ...where, '--key', key])).out.split('\n\n')[0] ?? '';
    const agents = await printed('openai-agents');
    assert.match(agents, /^\/\/ TypeScript: responses\n/);
    assert.match(agents, /setTracingDisabled\(true\)/);
    assert.doesNotMatch(agents, /setOpenAIAPI/);
    assert.match(await printed('ai-sdk'), /^\/\/ responses\n[^]*createOpenAI\(/);
  });
});

describe('C4 the limits of the model', () => {
  const told = [
    'claude-code',
    'claude-agent-sdk',
    'opencode',
    'kilo',
    'pi',
    'qwen-code',
    'continue',
    'crush',
    'goose',
    'zed',
    'aider',
    'roo-code',
  ];
  for (const { name } of able) {
    test(`C4 ${name}: ${told.includes(name) ? 'is told the window' : 'takes no window'}`, async () => {
      const without = await run(connectCommand, [name, ...where, '--key', key]);
      const { code, out } = await run(connectCommand, [name, ...where, '--key', key, ...limits]);
      assert.equal(code, 0);
      assert.equal(out.includes('98765'), told.includes(name), out);
      assert.equal(
        /Set it with --window TOKENS/.test(without.err),
        told.includes(name),
        without.err,
      );
    });
  }

  test('C4 claude-code: every name that it may ask for stands for the model', async () => {
    const { out } = await run(connectCommand, ['claude-code', ...where, '--key', key, ...limits]);
    for (const name of [
      'ANTHROPIC_MODEL',
      'ANTHROPIC_DEFAULT_OPUS_MODEL',
      'ANTHROPIC_DEFAULT_SONNET_MODEL',
      'ANTHROPIC_DEFAULT_HAIKU_MODEL',
      'ANTHROPIC_DEFAULT_FABLE_MODEL',
      'ANTHROPIC_SMALL_FAST_MODEL',
      'CLAUDE_CODE_SUBAGENT_MODEL',
    ]) {
      assert.ok(out.includes(`export ${name}=${model}\n`), name);
    }
    assert.match(out, /^export CLAUDE_CODE_MAX_CONTEXT_TOKENS=98765$/m);
    assert.match(out, /^export CLAUDE_CODE_MAX_OUTPUT_TOKENS=4321$/m);
  });

  test('C4 opencode: room for an answer is kept free, a quarter of the window at most', async () => {
    for (const [window, more, output] of [
      ['8192', [], 2048],
      ['200000', ['--max-output', '64000'], 50_000],
      ['200000', ['--max-output', '4321'], 4321],
      ['1000000', [], 32_000],
    ] as const) {
      const given = [...where, '--key', key, '--window', window, ...more];
      const { out } = await run(connectCommand, ['opencode', ...given]);
      const limit = /"limit": (\{[^}]*\})/.exec(out)?.[1] ?? '';
      assert.deepEqual(jsonAt(limit, []), { context: Number(window), output });
    }
  });

  test('C4 what is no number of tokens is refused', async () => {
    for (const flag of ['--window', '--max-output']) {
      const { code, err } = await run(connectCommand, ['pi', flag, '12k']);
      assert.equal(code, 2);
      assert.match(err, new RegExp(`^${flag}: `));
    }
  });
});

describe('C7 --write', () => {
  const args = [...where, '--key', key, ...limits];

  for (const row of withFiles) {
    const { name, file, at } = row;
    const id = at === 0 ? name : `${name} (${at + 1})`;

    test(`C7 ${id}: what was written reads as what is printed; once more changes nothing`, async () => {
      const { env, place, options } = fileIn(temporaryFolder('home'), row);
      const { code, err } = await run(connectCommand, [name, '--write', ...options, ...args], env);
      assert.equal(code, 0, err);
      const connection = {
        url: 'http://127.0.0.1:1',
        key,
        model,
        window: 98_765,
        maxOutput: 4321,
      };
      const edits = file.edits({ connection, modelGiven: true, env });
      const wanted = edits.reduce<Json | undefined>(
        (node, { path, value }) => (value === undefined ? node : placed(node, path, value)),
        undefined,
      );
      const text = readFileSync(place, 'utf8');
      assert.deepEqual(read[file.format](text), wanted);
      const isSecret = edits.some(({ secret }) => secret === true);
      assert.equal(statSync(place).mode & 0o777, isSecret ? 0o600 : 0o666 & ~process.umask());
      const again = await run(connectCommand, [name, '--write', ...options, ...args], env);
      assert.match(again.out, /is up to date/);
      assert.equal(readFileSync(place, 'utf8'), text);
      assert.ok(!existsSync(`${place}.bak`));
    });

    test(`C7 ${id}: comments and order of what is there stay, and it is kept beside`, async () => {
      const { env, place, options } = fileIn(temporaryFolder('home'), row);
      const before =
        file.format === 'json'
          ? '// mine\n{\n  "zeta": [1, 2], // why\n  "alpha": { "b": "c" }, /* end */\n}\n'
          : place.endsWith('models.yaml')
            ? '# mine\n- model_id: other # why\n  model_name: x\n'
            : '# mine\nzeta: [1, 2] # why\nalpha:\n  b: c\n';
      put(place, before);
      const ran = await run(connectCommand, [name, '--write', ...options, ...args], env);
      assert.equal(ran.code, 0, ran.err);
      const text = readFileSync(place, 'utf8');
      for (const line of before.trimEnd().split('\n')) {
        const words = line.replace(/[ ,}\]]+$|\/\* end \*\/$/g, '').replace(/ +/g, '');
        assert.ok(text.replace(/ +/g, '').includes(words), `${line}\n${text}`);
      }
      assert.ok(text.indexOf('zeta') <= text.indexOf('alpha'));
      assert.equal(readFileSync(`${place}.bak`, 'utf8'), before);
      assert.ok(ran.out.includes(`Backup of the old file: ${place}.bak\n`));
      assert.ok(!ran.out.includes(key));
    });

    test(`C7 ${id}: a link, a folder and what cannot be read are left as they are, and said`, async () => {
      const root = temporaryFolder('home');
      const { env, place, options } = fileIn(root, row);
      const refused = async (words: RegExp): Promise<void> => {
        await assert.rejects(
          run(connectCommand, [name, '--write', ...options, ...args], env),
          (error) => {
            assert.ok(error instanceof Error);
            assert.match(error.message, words);
            assert.ok(error.message.includes(place), error.message);
            return true;
          },
        );
      };
      const elsewhere = join(root, 'elsewhere');
      writeFileSync(elsewhere, '');
      mkdirSync(dirname(place), { recursive: true });
      symlinkSync(elsewhere, place);
      await refused(/is a link to .*elsewhere; it was left as it is/);
      assert.equal(readFileSync(elsewhere, 'utf8'), '');
      rmSync(place);
      mkdirSync(place);
      await refused(/is not a file; it was left as it is/);
      rmSync(place, { recursive: true });
      for (const text of ['{"a": ', '"only a text"']) {
        put(place, text);
        await refused(/was left as it is: /);
        assert.equal(readFileSync(place, 'utf8'), text);
      }
      assert.deepEqual(
        readdirSync(dirname(place)).filter(
          (each) => each.includes('.bak') || each.includes('.new'),
        ),
        [],
      );
    });
  }

  test('C7 a second model stands beside the first, in lists too', async () => {
    const root = temporaryFolder('home');
    for (const each of ['first', 'second']) {
      for (const client of ['pi', 'continue', 'opencode']) {
        const rest = ['--base-url', 'http://127.0.0.1:1', '--key', key, '--model', each];
        const { code } = await run(connectCommand, [client, '--write', ...rest], { HOME: root });
        assert.equal(code, 0);
      }
    }
    const pi = jsonAt(readFileSync(join(root, '.pi/agent/models.json'), 'utf8'), []);
    assert.deepEqual(jsonAt(JSON.stringify(pi), ['providers', 'model-gateway', 'models']), [
      { id: 'first', name: 'first' },
      { id: 'second', name: 'second' },
    ]);
    const continued = parse(readFileSync(join(root, '.continue/config.yaml'), 'utf8'));
    assert.deepEqual(
      continued.models.map((each: { model: string }) => each.model),
      ['first', 'second'],
    );
  });

  test('C7 a key in the environment is named in the file where the client reads it there', async () => {
    const root = temporaryFolder('home');
    const env = { HOME: root, MODEL_GATEWAY_KEY: key };
    for (const client of ['pi', 'opencode', 'kilo', 'crush', 'claude-code-router', 'qwen-code']) {
      const { code } = await run(connectCommand, [client, '--write', ...where], env);
      assert.equal(code, 0);
      const place = clients.find(({ name }) => name === client)?.files?.[0]?.path(env) ?? '';
      const text = readFileSync(place, 'utf8');
      assert.match(text, /MODEL_GATEWAY_KEY/);
      assert.ok(!text.includes(key), text);
    }
  });

  test('C4 claude-code: the limits of an earlier model go with it, and nothing else', async () => {
    for (const before of [
      '{"env": {"OTHER": "1"}}',
      '{\n  // mine\n  "env": {\n    "CLAUDE_CODE_MAX_CONTEXT_TOKENS": "1",\n    "OTHER": "1"\n  }\n}\n',
      '{"env": {"CLAUDE_CODE_MAX_CONTEXT_TOKENS": "1"}}',
      '{"env": {"OTHER": "1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "1" /* why */,}}',
    ]) {
      const root = temporaryFolder('home');
      const env = { HOME: root };
      const place = join(root, '.claude', 'settings.json');
      put(place, before);
      const read = (): Json | undefined => jsonAt(readFileSync(place, 'utf8'), ['env']);
      await run(connectCommand, ['claude-code', '--write', ...args], env);
      const limited = read();
      await run(connectCommand, ['claude-code', '--write', ...where, '--key', key], env);
      const names = ['CLAUDE_CODE_MAX_CONTEXT_TOKENS', 'CLAUDE_CODE_MAX_OUTPUT_TOKENS'];
      const left = Object.entries(limited ?? {}).filter(([name]) => !names.includes(name));
      assert.equal(left.length, Object.keys(limited ?? {}).length - 2);
      assert.deepEqual(read(), Object.fromEntries(left));
      for (const comment of before.match(/\/\/ mine|\/\* why \*\//g) ?? []) {
        assert.ok(readFileSync(place, 'utf8').includes(comment), comment);
      }
    }
  });

  test('C7 librechat.yaml has no usual place: it must be said', async () => {
    const env = { HOME: temporaryFolder('home') };
    const { code, err } = await run(connectCommand, ['librechat', '--write', ...args], env);
    assert.equal(code, 2);
    assert.match(err, /give the path of librechat\.yaml with --file/);
  });
});
