// Runs the joined program once, and saves the code that V8 made of it: of all modules, and of the functions that a start and
// a first call on each endpoint have run. Usage: node save-code.mjs FOLDER, which has the program; run by the build.
import {
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = realpathSync(process.argv[2]);
const main = join(folder, 'main.js');
const key = 'key-of-the-call-that-saves-code';
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };

/** The vendor: a document, or a stream. */
function answer(request, response) {
  let text = '';
  request.on('data', (part) => (text += part));
  request.on('end', () => {
    const head = { id: 'chatcmpl-1', created: 1, model: 'm', system_fingerprint: null };
    const { stream } = JSON.parse(text);
    response.setHeader('content-type', stream ? 'text/event-stream' : 'application/json');
    if (!stream) {
      const message = { role: 'assistant', content: 'Hello.', refusal: null };
      const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }];
      response.end(JSON.stringify({ ...head, object: 'chat.completion', choices, usage }));
      return;
    }
    const event = (delta, finish_reason = null, more = {}) => {
      const choices = [{ index: 0, delta, logprobs: null, finish_reason }];
      const chunk = { ...head, object: 'chat.completion.chunk', choices, usage: null, ...more };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    };
    event({ role: 'assistant', content: '' });
    for (const content of ['Hel', 'lo', '.']) event({ content });
    event({}, 'stop');
    event({}, null, { choices: [], usage });
    response.end('data: [DONE]\n\n');
  });
}

/** Starts the program in this process. @returns its address */
function start(compiled, entry, args) {
  process.argv = [process.execPath, main, 'start', ...args];
  process.env.MODEL_GATEWAY_KEY = key;
  return new Promise((resolve) => {
    process.stdout.write = (text) => {
      const url = /^listening (http:\S+)/m.exec(text)?.[1];
      if (url !== undefined) resolve(url);
      return true;
    };
    load(entry, compiled);
  });
}

async function call(url, path, body) {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'vendor/m', ...body }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${text}`);
}

/** What an entry can load, itself included; the folder has files of earlier builds, too. */
function modulesOf(name, known = new Set()) {
  if (known.has(name)) return known;
  known.add(name);
  const text = readFileSync(join(folder, name), 'latin1');
  for (const [, next] of text.matchAll(/require\("\.\/([\w-]+\.cjs)"\)/g)) modulesOf(next, known);
  return known;
}

const [, run, entry] = /\('(\S+)'\)\.run\('(\S+)'\)/.exec(readFileSync(main, 'utf8'));
const { codePath, compile, load, pack } = createRequire(main)(run);
const scripts = new Map();
const compiled = (name) => {
  const script = compile(name);
  scripts.set(name, script);
  return script;
};
const scratch = mkdtempSync(join(tmpdir(), 'saves-code-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
const vendor = createServer(answer);
await new Promise((resolve) => vendor.listen(0, '127.0.0.1', resolve));
const config = join(scratch, 'gateway.yaml');
const { port } = vendor.address();
writeFileSync(
  config,
  `providers: { vendor: { dialect: openai-chat, base_url: "http://127.0.0.1:${port}/v1", api_key: x } }\n`,
);
const anyPort = '127.0.0.1:0';
const options = ['--config', config, '--data-dir', join(scratch, 'data')];
const url = await start(compiled, entry, [
  ...options,
  '--listen',
  anyPort,
  '--admin-listen',
  anyPort,
]);
const messages = [{ role: 'user', content: 'Hello' }];
for (const stream of [false, true]) {
  await call(url, '/v1/chat/completions', { messages, stream });
  await call(url, '/v1/messages', { messages, stream, max_tokens: 10 });
  await call(url, '/v1/responses', { input: 'Hello', stream });
}

// The modules that were not needed, as they are before their first line has run.
for (const name of modulesOf(entry)) if (!scripts.has(name)) compiled(name);
const code = new Map([...scripts].map(([name, script]) => [name, script.createCachedData()]));
const making = `${codePath(entry)}.${process.pid}`;
writeFileSync(making, pack(code));
renameSync(making, codePath(entry));
process.exit(0);
