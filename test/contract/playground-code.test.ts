/**
 * Issue 24: the programs of the playground's code tab run as they are, and ask the upstream for what the playground
 * asks it for: curl, TypeScript with the official SDKs, Python with recorded calls of its SDKs.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { codeOf, type CodedRequest } from '../../dashboard/src/pages/playground/formats/code.ts';
import { requestBody } from '../../dashboard/src/pages/playground/formats/request.ts';
import { exampleTools } from '../../dashboard/src/pages/playground/formats/tools.ts';
import {
  noSettings,
  type CallSettings,
} from '../../dashboard/src/pages/playground/formats/turns.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import { temporaryFolder } from '../support/folders.ts';
import { send } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { endpointOf } from '../support/requests.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { replying } from '../upstream/reply.ts';

const root = join(import.meta.dirname, '../..');
const answer = 'Hello from the upstream.';
/** Quotes and escapes of shells, JavaScript and Python. */
const hard = `It's "$HOME" \\n \${x} \`id\` {y}\nüñ🦀 </script>`;

function settings(endpoint: ClientDialect, model: string, stream: boolean): CallSettings {
  return {
    ...noSettings,
    endpoint,
    model,
    stream,
    system: hard,
    maxTokens: '2000',
    temperature: '0.5',
    topP: '0.9',
    stop: 'END',
    seed: '7',
    effort: 'low',
    format: 'schema',
    schema: '{"type":"object","properties":{"it\'s":{"type":"null"}},"additionalProperties":false}',
    tools: exampleTools(endpoint),
    toolChoice: 'auto',
    more: '{"metadata":{"user_id":"__proto__"}}',
  };
}

interface Program {
  readonly endpoint: ClientDialect;
  readonly request: CodedRequest;
  readonly stream: boolean;
  /** What the upstream got of the same body by itself, then of each program. */
  readonly sent: (index: number) => Promise<unknown>;
}

describe('issue 24: the code tab of the playground', { timeout: 300_000 }, () => {
  let rig: Rig;
  let folder: string;
  const programs: Program[] = [];
  before(async () => {
    rig = await startRig();
    folder = temporaryFolder('code');
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    for (const endpoint of clientDialects) {
      for (const stream of [false, true]) {
        const reply = replying(endpoint, { text: answer });
        const { model, script } = rig.play(endpoint, reply, reply, reply);
        const chosen = settings(endpoint, model, stream);
        const body = requestBody(chosen, [{ role: 'user', text: hard, pictures: [] }]);
        const extra = JSON.parse(chosen.more) as CodedRequest['extra'];
        const path = rig.gateway.url + endpointOf[endpoint];
        const direct = await send(path, body, {
          headers: { authorization: `Bearer ${clientKey}` },
        });
        assert.equal(direct.status, 200, direct.text);
        const sent = async (index: number) => (await script.request(index)).json;
        programs.push({ endpoint, stream, request: { endpoint, body, extra }, sent });
      }
    }
  });
  after(() => rig.stop());

  const environment = (): NodeJS.ProcessEnv => ({
    PATH: process.env['PATH'],
    MODEL_GATEWAY_KEY: clientKey,
  });

  /** Its output; the rig answers from this process, which must not block. */
  async function output(command: string, args: readonly string[]): Promise<string> {
    const child = spawn(command, args, { cwd: folder, env: environment() });
    const pieces: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (piece: Buffer) => pieces.push(piece));
    }
    const code = await new Promise((resolve) => child.on('close', resolve));
    const text = Buffer.concat(pieces).toString();
    assert.equal(code, 0, text);
    return text;
  }

  test('curl asks for the same', async () => {
    for (const { request, sent } of programs) {
      const code = codeOf('curl', request, rig.gateway.url);
      const text = await output('sh', ['-c', code.replace(/^curl /, 'curl -sS ')]);
      assert.match(text, /Hello/);
      assert.deepEqual(await sent(1), await sent(0));
    }
  });

  test('TypeScript asks for the same, and prints the answer', async () => {
    for (const [index, { request }] of programs.entries()) {
      writeFileSync(join(folder, `${index}.ts`), codeOf('TypeScript', request, rig.gateway.url));
    }
    const all = programs.map((_, index) => `await import('./${index}.ts');`).join('\n');
    writeFileSync(join(folder, 'all.mjs'), all);
    const text = await output(process.execPath, [
      '--disable-warning=ExperimentalWarning',
      'all.mjs',
    ]);
    assert.equal(text.split(answer).length - 1, programs.length, text);
    for (const { sent } of programs) assert.deepEqual(await sent(2), await sent(0));
  });

  const hasPython = spawnSync('python3', ['--version']).status === 0;
  test(
    'Python passes the same to its SDKs',
    { skip: hasPython ? false : 'no python3' },
    async () => {
      const modules = join(folder, 'modules');
      mkdirSync(modules);
      for (const sdk of ['OpenAI', 'Anthropic']) {
        writeFileSync(join(modules, `${sdk.toLowerCase()}.py`), `${recorder}\n${sdk} = Client\n`);
      }
      for (const [index, { request }] of programs.entries()) {
        writeFileSync(join(modules, `p${index}.py`), codeOf('Python', request, rig.gateway.url));
      }
      const imports = programs.map((_, index) => `import p${index}`).join('\n');
      writeFileSync(join(modules, 'all.py'), imports);
      const lines = (await output('python3', [join(modules, 'all.py')])).trim().split('\n');
      assert.equal(lines.length, programs.length);
      for (const [index, { endpoint, request }] of programs.entries()) {
        const { client, path, body } = JSON.parse(lines[index] ?? '') as Readonly<
          Record<string, unknown>
        >;
        const url = rig.gateway.url + (endpoint === 'messages' ? '' : '/v1');
        assert.deepEqual(client, { base_url: url, api_key: clientKey });
        assert.equal(
          path,
          { chat: 'chat.completions', messages: 'messages', responses: 'responses' }[endpoint] +
            '.create',
        );
        assert.deepEqual(body, request.body);
      }
    },
  );
});

/** Replaces the SDK and prints the requests. Answers have every member that the code reads, and are empty as streams. */
const recorder = `import json

class Anything:
    def __getattr__(self, name): return self
    def __getitem__(self, index): return self
    def __iter__(self): return iter([])
    def __str__(self): return ''

class Call:
    def __init__(self, client, path): self.client, self.path = client, path
    def __getattr__(self, name): return Call(self.client, self.path + [name])
    def __call__(self, extra_body={}, **body):
        line = {'client': self.client, 'path': '.'.join(self.path), 'body': {**body, **extra_body}}
        print(json.dumps(line), end='' if not body.get('stream') else '\\n')
        return Anything()

def Client(**options): return Call(options, [])
`;
