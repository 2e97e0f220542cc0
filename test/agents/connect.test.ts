/**
 * Released clients, connected by exactly what `connect` prints or writes, in an empty home (C4, C7). What was
 * tried by hand besides stands in docs/user/clients.md.
 */
import assert from 'node:assert/strict';
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { clientKey } from '../support/keys.ts';
import { objectAt, type Dialect } from '../support/reading.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { answerIn, plainUsage } from '../upstream/reply.ts';
import type { Received } from '../upstream/scripted.ts';
import { claudeCode, printed, quietClaudeCode, quietOpencode, quietQwenCode } from './agents.ts';
import { answerOf } from './answers.ts';
import { openBox, type Box, type Ran } from './box.ts';
import { withAgent, withLibraries } from './installed.ts';
import { play } from './scene.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const window = 100_000;
const maxOutput = 5000;
const words = 'The gateway was reached.';

interface Asked {
  readonly ran: Ran;
  readonly received: readonly Received[];
  readonly model: string;
}

/** Connects the client in a new box, runs it there, and gives what the upstream got. */
async function connected(
  upstream: Dialect,
  client: string,
  run: (
    box: Box,
    connect: (...more: readonly string[]) => Promise<string>,
    model: string,
  ) => Promise<Ran>,
): Promise<Asked> {
  const { model, script } = rig.play(upstream, (request: Received) =>
    answerOf(upstream, { text: words }, request.json['stream'] === true),
  );
  const box = await openBox(rig.gateway.url);
  const where = ['--base-url', rig.gateway.url, '--key', clientKey, '--model', model];
  const limits = ['--window', String(window), '--max-output', String(maxOutput)];
  const connect = (...more: readonly string[]): Promise<string> =>
    printed([client, ...where, ...limits, ...more], { HOME: box.home });
  try {
    const ran = await run(box, connect, model);
    assert.deepEqual(box.tried, [], 'nothing beyond the gateway');
    return { ran, received: script.requests, model };
  } finally {
    await box.close();
  }
}

interface ByFile {
  readonly client: string;
  readonly args: (model: string) => readonly string[];
  readonly env?: { readonly [name: string]: string };
  /** Makes settings that are there before `connect`; gives its environment. */
  before?(box: Box): Promise<ByFile['env']>;
}

const byFile: readonly ByFile[] = [
  {
    client: 'pi',
    args: (model) => ['--model', `model-gateway/${model}`, '-p', 'Say hello.'],
    env: { PI_OFFLINE: '1', PI_SKIP_VERSION_CHECK: '1', PI_TELEMETRY: '0' },
  },
  {
    client: 'continue',
    args: () => ['-p', 'Say hello.'],
    env: { CONTINUE_TELEMETRY_ENABLED: '0' },
  },
  { client: 'qwen-code', args: () => ['-p', 'Say hello.'], before: quietQwenCode },
  {
    client: 'opencode',
    args: (model) => ['run', '--model', `model-gateway/${model}`, 'Say hello.'],
    before: quietOpencode,
  },
];

for (const { client, args, env = {}, before: prepare } of byFile) {
  withAgent(client, (program) => {
    test(`C7 ${client} runs by what connect ${client} --write put into its settings`, async () => {
      const { ran, received } = await connected('chat', client, async (box, connect, model) => {
        const more = await prepare?.(box);
        await connect('--write');
        return box.run([...program, ...args(model)], { env: { ...env, ...more } });
      });
      assert.equal(ran.code, 0, `${ran.out}\n${ran.err}`);
      assert.ok(ran.out.includes(words), `${ran.out}\n${ran.err}`);
      const main = received.find(({ json }) => Array.isArray(json['tools']));
      const most = main?.json['max_tokens'] ?? main?.json['max_completion_tokens'];
      assert.equal(most, maxOutput, 'C4 its longest answer is the model’s');
    });
  });
}

withAgent('opencode', (program) => {
  const isSummary = ({ json }: Received): boolean =>
    /anchored summary|summarize|summarization/i.test(JSON.stringify(json['messages']));

  /** How often it asked for a summary of a conversation of 4,200 tokens. */
  async function summaries(...limits: readonly string[]): Promise<number> {
    const { model, script } = rig.play('chat', (request: Received) => {
      const isShort = script.requests.some(isSummary);
      const usage = { ...plainUsage, fresh: isShort ? 40 : 4200 };
      return answerIn('chat', { text: words, usage }, request.json['stream'] === true);
    });
    const box = await openBox(rig.gateway.url);
    try {
      const where = ['--base-url', rig.gateway.url, '--key', clientKey, '--model', model];
      await printed(['opencode', '--write', ...where, ...limits], { HOME: box.home });
      const run = [...program, 'run', '--model', `model-gateway/${model}`, 'Say hello.'];
      const ran = await box.run(run, { env: await quietOpencode(box) });
      assert.equal(ran.code, 0, ran.err);
      return script.requests.filter(isSummary).length;
    } finally {
      await box.close();
    }
  }

  test('C4 opencode compacts a conversation that its window does not hold, and no other', async () => {
    assert.ok((await summaries('--window', '4000', '--max-output', '500')) > 0);
    assert.equal(await summaries('--window', '100000'), 0);
  });
});

const libraries = ['openai-sdk', 'anthropic-sdk', 'ai-sdk', 'langchain', 'openai-agents'];

withLibraries((packages) => {
  for (const client of libraries) {
    test(`C7 ${client}: the TypeScript that connect prints runs as it is`, async () => {
      let blocks = 0;
      const { received, model } = await connected('chat', client, async (box, connect) => {
        await symlink(packages, join(box.project, 'node_modules'));
        let last: Ran = { code: 0, out: '', err: '' };
        for (const block of blocksOf(await connect(), typescript)) {
          const file = join(box.project, `block-${blocks++}.mjs`);
          last = await runBlock(box, [process.execPath, file], block);
        }
        return last;
      });
      assert.ok(blocks > 0);
      assert.equal(received.length, blocks);
      const rows = await rig.gateway.callRows(model, blocks);
      const byResponses = rows.filter(({ endpoint }) => endpoint === 'openai-responses');
      assert.equal(byResponses.length, client === 'anthropic-sdk' ? 0 : 1);
    });
  }
});

withAgent('python-openai', (runner) => {
  test('C7 openai-sdk: the Python that connect prints runs as it is', async () => {
    let blocks = 0;
    const { received } = await connected('chat', 'openai-sdk', async (box, connect) => {
      let last: Ran = { code: 0, out: '', err: '' };
      for (const block of blocksOf(await connect(), python)) {
        const file = join(box.project, `block-${blocks++}.py`);
        last = await runBlock(box, [...runner, file], block);
      }
      return last;
    });
    assert.equal(blocks, 2);
    assert.equal(received.length, blocks);
  });
});

const typescript = /^\/\/ [^\n]*\nimport /;
const python = /^# [^\n]*\nimport /;

/** The blocks of a language among the printed lines; each begins with a comment that says what it is. */
function blocksOf(text: string, language: RegExp): readonly string[] {
  return text.split(/^(?=\/\/ |# )/m).filter((block) => language.test(block));
}

async function runBlock(box: Box, command: readonly string[], block: string): Promise<Ran> {
  await writeFile(command.at(-1) ?? '', block);
  const ran = await box.run(command);
  assert.equal(ran.code, 0, `${block}\n${ran.err}`);
  assert.ok(ran.out.includes(words), `${block}\n${ran.out}`);
  return ran;
}

withAgent('claude-code', (program) => {
  test('C4 Claude Code’s subagent of another size asks for the model that was named', async () => {
    const scene = await play(rig, {
      agent: claudeCode(program),
      upstream: 'messages',
      steps: () => [
        {
          calls: [
            {
              id: 'toolu_01sub',
              name: 'Agent',
              input: {
                description: 'Look',
                prompt: 'Say what you are.',
                subagent_type: 'general-purpose',
                model: 'sonnet',
              },
            },
          ],
        },
        { text: 'I am the subagent.' },
        { text: 'The subagent has answered.' },
      ],
    });
    assert.equal(scene.ran.code, 0, `${scene.ran.out}\n${scene.ran.err}`);
    assert.match(scene.ran.out, /The subagent has answered/);
    const subagent = scene.main.find(({ messages }) => {
      const [first] = Array.isArray(messages) ? messages : [];
      return JSON.stringify(first).includes('Say what you are.');
    });
    assert.ok(subagent !== undefined, 'the subagent reached the model');
    for (const call of scene.calls) assert.equal(call['outcome'], 'ok', JSON.stringify(call));
  });

  test('C4 Claude Code takes the window and the longest answer of the model', async () => {
    const { ran, received, model } = await connected(
      'messages',
      'claude-code',
      async (box, connect) => {
        await connect('--write');
        const question = ['--output-format', 'json', '-p', 'Say hello.'];
        return box.run([...program, ...question], { env: quietClaudeCode });
      },
    );
    assert.equal(ran.code, 0, `${ran.out}\n${ran.err}`);
    const usage = objectAt(objectAt(tryParseObject(ran.out) ?? {}, 'modelUsage'), model);
    assert.equal(usage['contextWindow'], window);
    assert.equal(received[0]?.json['max_tokens'], maxOutput);
  });
});
