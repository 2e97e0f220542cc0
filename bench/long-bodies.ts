/**
 * How long a body of up to 32 MB holds up everybody else (G11): one client sends it, another asks
 * /healthz all the while; the longest wait of the second is what the first cost it. Both modes, and
 * bodies that are refused. `node bench/long-bodies.ts`, half a minute.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { putSection } from './saved-sections.ts';

const megabyte = 1024 * 1024;
const key = 'bench-key-0123456789abcdef';
const program = join(import.meta.dirname, '..', 'bin', 'model-gateway');
const rounds = 3;

function turns(text: string, bytes: number): string {
  const turn = JSON.stringify({ role: 'user', content: text });
  return Array.from({ length: Math.floor(bytes / (turn.length + 1)) }, () => turn).join(',');
}

function image(bytes: number): string {
  const url = `data:image/png;base64,iVBORw0KGgoA${'A'.repeat(bytes)}`;
  return `{"role":"user","content":[{"type":"image_url","image_url":{"url":"${url}"}}]}`;
}

const code = 'function foo(a, b) {\n  return "x" + a;\n}\n\t// naïve “comment”\n'.repeat(60);
const turn = '{"role":"user","content":"Hello"}';

/** Members behind `"model":…`. */
const bodies: { readonly [name: string]: () => string } = {
  '9 MB of text': () => `"messages":[${turns(code, 9 * megabyte)}]`,
  '30 MB of text': () => `"messages":[${turns(code, 28 * megabyte)}]`,
  '30 MB in six images': () =>
    `"messages":[${Array.from({ length: 6 }, () => image(5 * megabyte)).join(',')}]`,
  '30 MB in one string of escapes': () =>
    `"messages":[{"role":"user","content":"${'\\n'.repeat(15 * megabyte)}"}]`,
  '160,000 keys': () =>
    `"messages":[${turn}],"x":{${Array.from({ length: 160_000 }, (_, i) => `"key number ${i}":1`).join(',')}}`,
  '490,000 numbers': () => `"messages":[${turn}],"x":[${'1234567890,'.repeat(490_000)}0]`,
  '400,000 long integers': () =>
    `"messages":[${turn}],"x":[${'12345678901234567890,'.repeat(400_000)}0]`,
  'refused: 1M keys': () =>
    `"x":{${Array.from({ length: 1_000_000 }, (_, i) => `"${i}":1`).join(',')}}`,
  'refused: 30 MB of brackets': () => `"x":${'['.repeat(30 * megabyte)}`,
  'refused: 30 MB cut off in a string': () => `"x":"${'a\\n'.repeat(10 * megabyte)}`,
};

/** An upstream that takes everything and says one word, in the dialect of the path. */
function startUpstream(): Promise<{ readonly server: Server; readonly port: number }> {
  const chat = {
    id: 'a',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  };
  const messages = {
    id: 'a',
    type: 'message',
    role: 'assistant',
    model: 'm',
    stop_reason: 'end_turn',
    content: [{ type: 'text', text: 'Hi' }],
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  };
  const server = createServer((asked, answer) => {
    asked.resume();
    asked.on('end', () => {
      answer.setHeader('content-type', 'application/json');
      answer.end(JSON.stringify(asked.url?.includes('messages') === true ? messages : chat));
    });
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve({ server, port: typeof address === 'object' && address !== null ? address.port : 0 });
    });
  });
}

function send(url: string, body: Buffer | undefined): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(body === undefined ? {} : { 'content-length': body.length }),
    };
    const method = body === undefined ? 'GET' : 'POST';
    const sent = request(url, { method, headers, agent: false }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode ?? 0));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

interface Outcome {
  readonly status: number;
  readonly totalMs: number;
  /** The longest wait of the other client. */
  readonly waitMs: number;
}

async function measure(url: string, body: Buffer): Promise<Outcome> {
  let waitMs = 0;
  const call = { over: false };
  const others = (async () => {
    while (!call.over) {
      const asked = performance.now();
      await send(`${url}/healthz`, undefined);
      waitMs = Math.max(waitMs, performance.now() - asked);
    }
  })();
  const begun = performance.now();
  // A refusal may come, and the connection be closed, while the body is still on its way.
  const status = await send(`${url}/v1/chat/completions`, body).catch(() => 0);
  const totalMs = performance.now() - begun;
  call.over = true;
  await others;
  return { status, totalMs, waitMs };
}

async function main(): Promise<void> {
  const { server, port } = await startUpstream();
  const folder = mkdtempSync(join(tmpdir(), 'gateway-bodies-'));
  const config = join(folder, 'gateway.yaml');
  const base = `http://127.0.0.1:${port}`;
  writeFileSync(
    config,
    JSON.stringify({
      providers: {
        chat: { dialect: 'openai-chat', base_url: `${base}/v1`, api_key: 'k' },
        messages: { dialect: 'anthropic-messages', base_url: base, api_key: 'k' },
      },
    }),
  );
  const listens = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
  const gateway = spawn(
    program,
    ['start', ...listens, '--data-dir', join(folder, 'data'), '--config', config],
    {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', HOME: folder, MODEL_GATEWAY_KEY: key },
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
  const url = await new Promise<string>((resolve) => {
    let said = '';
    gateway.stdout.on('data', (bytes: Buffer) => {
      said += bytes.toString('utf8');
      const found = /listening (\S+)/.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
  });
  const table: string[] = [];
  const say = (line: string): void => {
    table.push(`| ${line} |`);
    process.stdout.write(`${line}\n`);
  };
  say('body | mode | status | answered after, ms | longest wait of others, ms');
  table.push('| --- | --- | --- | --- | --- |');
  for (const [name, members] of Object.entries(bodies)) {
    for (const [provider, mode] of [
      ['chat', 'relay'],
      ['messages', 'translate'],
    ] as const) {
      if (name.startsWith('refused') && mode === 'translate') continue;
      const body = Buffer.from(`{"model":"${provider}/m",${members()}}`);
      const outcomes: Outcome[] = [];
      for (let round = 0; round < rounds; round += 1) outcomes.push(await measure(url, body));
      const best = outcomes.toSorted((a, b) => a.waitMs - b.waitMs)[Math.floor(rounds / 2)];
      if (best === undefined) continue;
      const { status, totalMs, waitMs } = best;
      say(`${name} | ${mode} | ${status} | ${totalMs.toFixed(0)} | ${waitMs.toFixed(0)}`);
    }
  }
  gateway.kill('SIGKILL');
  server.close();
  rmSync(folder, { recursive: true, force: true });
  if (process.argv.includes('--write')) keep(table);
}

function keep(table: readonly string[]): void {
  const date = new Date().toISOString().slice(0, 10);
  const head = `Written by \`node bench/long-bodies.ts --write\` on ${date}: the middle of ${rounds} rounds each.`;
  putSection('long-bodies', ['## Long bodies', '', head, '', ...table].join('\n'));
}

await main();
