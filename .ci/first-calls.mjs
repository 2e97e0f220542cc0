// Starts the gateway with the README's command on an empty data directory, makes one unary and one
// streamed call on each endpoint to local/tiny, compares text and token counts, opens the dashboard, and stops it.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const dataDir = mkdtempSync(join(tmpdir(), 'first-calls-'));
const started = Date.now();
const child = spawn('npm', ['start'], {
  stdio: ['ignore', 'pipe', 'inherit'],
  detached: true,
  env: {
    ...process.env,
    MODEL_GATEWAY_LISTEN: '127.0.0.1:0',
    MODEL_GATEWAY_ADMIN_LISTEN: '127.0.0.1:0',
    MODEL_GATEWAY_DATA_DIR: dataDir,
  },
});
const exited = new Promise((resolve) =>
  child.once('exit', (code, signal) => resolve({ code, signal })),
);

let failures = 0;
function check(name, condition, detail = '') {
  if (!condition) failures += 1;
  console.log(
    `${condition ? 'ok' : 'not ok'} first calls: ${name}${condition || detail === '' ? '' : ` (${detail})`}`,
  );
}

/** The addresses and the key that the banner prints. */
async function banner() {
  let text = '';
  for await (const chunk of child.stdout) {
    text += chunk;
    const url = /^listening (http:\/\/\S+)/m.exec(text)?.[1];
    const admin = /^admin (http:\/\/\S+)/m.exec(text)?.[1];
    const key = /\bgw_[0-9A-Za-z]{8}_[0-9A-Za-z]+/.exec(text)?.[0];
    if (url !== undefined && admin !== undefined && key !== undefined) return { url, admin, key };
  }
  throw new Error(`the gateway ended before it listened:\n${text}`);
}

async function post({ url, key }, path, body) {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

const events = (text) =>
  text
    .split('\n')
    .flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []));
const chatUsage = (usage) => [usage?.prompt_tokens, usage?.completion_tokens];
const messagesUsage = (usage) => [usage?.input_tokens, usage?.output_tokens];

try {
  const gateway = await banner();
  child.stdout.resume();
  const question = {
    model: 'local/tiny',
    max_tokens: 64,
    temperature: 0,
    messages: [{ role: 'user', content: 'Who are you?' }],
  };

  const unary = await post(gateway, '/v1/chat/completions', question);
  check(
    `first answer ${((Date.now() - started) / 1000).toFixed(1)} s after the start command`,
    unary.status === 200,
    unary.text,
  );
  const chat = JSON.parse(unary.text);
  const said = chat.choices[0].message.content;
  const counts = chatUsage(chat.usage);
  check('chat: text', typeof said === 'string' && said.length > 0);
  check(
    'chat: total is the sum',
    chat.usage.total_tokens === counts[0] + counts[1] && counts[0] > 0 && counts[1] > 0,
  );

  const whole = JSON.parse((await post(gateway, '/v1/messages', question)).text);
  check('messages: the same text', whole.content?.[0]?.text === said, JSON.stringify(whole));
  check(
    'messages: the same counts',
    messagesUsage(whole.usage).join() === counts.join(),
    JSON.stringify(whole.usage),
  );

  const streamed = await post(gateway, '/v1/chat/completions', {
    ...question,
    stream: true,
    stream_options: { include_usage: true },
  });
  const chunks = events(streamed.text);
  check(
    'chat stream: the same text',
    chunks.map((chunk) => chunk.choices[0]?.delta?.content ?? '').join('') === said,
  );
  check(
    'chat stream: the same counts',
    chatUsage(chunks.findLast((chunk) => chunk.usage)?.usage).join() === counts.join(),
  );
  check('chat stream: ends in [DONE]', streamed.text.trimEnd().endsWith('data: [DONE]'));

  const messages = await post(gateway, '/v1/messages', { ...question, stream: true });
  const sent = events(messages.text);
  check(
    'messages stream: the same text',
    sent.map((event) => event.delta?.text ?? '').join('') === said,
  );
  const last = sent.findLast((event) => event.type === 'message_delta');
  check(
    'messages stream: the same counts',
    messagesUsage(last?.usage).join() === counts.join(),
    JSON.stringify(last),
  );
  check('messages stream: ends in message_stop', sent.at(-1)?.type === 'message_stop');

  const refused = await post({ ...gateway, key: 'wrong' }, '/v1/messages', question);
  check('a wrong key is refused', refused.status === 401);

  const page = await (await fetch(`${gateway.admin}/`)).text();
  const [script = ''] = /\/assets\/index-[^"]+\.js/.exec(page) ?? [];
  const code = await fetch(`${gateway.admin}${script}`);
  check('the dashboard is there', code.headers.get('content-type')?.includes('javascript'), page);
} catch (error) {
  check('the gateway serves', false, String(error));
}

child.kill('SIGTERM');
const end = await Promise.race([
  exited,
  new Promise((resolve) => setTimeout(() => resolve({ code: 'still running' }), 120_000).unref()),
]);
check('SIGTERM ends it with exit code 0', end.code === 0, JSON.stringify(end));
if (end.code === 'still running') process.kill(-child.pid, 'SIGKILL');
rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
process.exitCode = failures > 0 ? 1 : 0;
