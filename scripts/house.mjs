// Prints how large the gateway is and how much of it a call runs through, beside the aims, as a Markdown table.
// The first column is what this script printed for the commit that the redesign started from.
// Usage: npm run house [-- DIRECTORY of another checkout]
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseAst } from 'vite';

const root = resolve(process.argv[2] ?? join(import.meta.dirname, '..'));
const sources = globSync('src/**/*.{ts,wat}', { cwd: root }).map((path) => ({
  path,
  text: readFileSync(join(root, path), 'utf8'),
}));
const programs = sources
  .filter(({ path }) => path.endsWith('.ts'))
  .map((source) => ({ ...source, ...parsed(source.text) }));

function linesOf(text) {
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
}

/** Lines of each function with a block, comments, and specifiers of imports. */
function parsed(text) {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  const lineOf = (offset) => starts.findLastIndex((start) => start <= offset);
  const functions = [];
  const imports = new Set();
  const visit = (node) => {
    if (node === null || typeof node !== 'object') return;
    if (Array.isArray(node)) return node.forEach(visit);
    const { type, source, body, start, end } = node;
    if (/^(Import|Export).*Declaration$|^ImportExpression$/.test(type) && source?.value)
      imports.add(source.value);
    if (/Function/.test(type) && body?.type === 'BlockStatement')
      functions.push(lineOf(end) - lineOf(start) + 1);
    for (const [key, child] of Object.entries(node))
      if (key !== 'range' && key !== 'loc') visit(child);
  };
  visit(parseAst(text, { lang: 'ts' }));
  return { functions, imports: [...imports] };
}

function lonelyFiles() {
  const importers = new Map();
  for (const { path, imports } of programs) {
    for (const name of imports.filter((each) => each.startsWith('.'))) {
      const target = join(dirname(path), name);
      importers.set(target, [...(importers.get(target) ?? []), path]);
    }
  }
  return [...importers].filter(
    ([path, its]) => its.length === 1 && dirname(its[0]) === dirname(path),
  ).length;
}

/** Ids such as F81 in comments, and those that no document has. */
function ids() {
  const documents = globSync('docs/**/*.md', { cwd: root }).map((path) =>
    readFileSync(join(root, path), 'utf8'),
  );
  const known = new Set(documents.flatMap((text) => text.match(/\b[A-Z]{1,3}\d{1,3}\b/g) ?? []));
  // A line of docs/guarantees.md may have a range, such as F21–F30.
  for (const [, letter, first, last] of documents
    .join('\n')
    .matchAll(/\b([A-Z])(\d{1,3})–\1(\d{1,3})\b/g))
    for (let i = Number(first); i <= Number(last); i += 1) known.add(`${letter}${i}`);
  const named = new Set(
    sources
      .flatMap(({ text }) => text.match(/\/\*[\s\S]*?\*\/|\/\/.*$|;;.*$/gm) ?? [])
      .flatMap((comment) => comment.match(/(?<![-\w])(?:[A-Z]|EM|OB)\d{1,3}\b(?!\.\d)/g) ?? []),
  );
  return { all: named.size, unknown: [...named].filter((id) => !known.has(id)) };
}

const chunk = (delta, finish_reason = null, more = {}) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }], ...more })}\n\n`;
const usage = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 };
const stream = [
  chunk({ role: 'assistant', content: '' }),
  chunk({ content: 'Good' }),
  chunk({ content: ' day.' }),
  chunk({}, 'stop'),
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage })}\n\n`,
  'data: [DONE]\n\n',
];
const message = { role: 'assistant', content: 'Good day.' };
const document = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message, finish_reason: 'stop' }],
  usage,
});

/** A provider of the chat dialect that answers at once. */
async function startUpstream() {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request.setEncoding('utf8')) body += piece;
    if (!body.includes('"stream":true'))
      return void response.setHeader('content-type', 'application/json').end(document);
    response.setHeader('content-type', 'text/event-stream');
    for (const frame of stream) {
      response.write(frame);
      await sleep(2);
    }
    response.end();
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  return server;
}

/** Files and functions of src/ that one warm call runs through, by V8's coverage. */
async function coverageOf(call) {
  for (let i = 0; i < 20; i += 1) await call();
  // Rows are written and timers of the warm calls have run.
  await sleep(1500);
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await session.post('Profiler.takePreciseCoverage');
  await call();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();
  const prefix = pathToFileURL(join(root, 'src')).href;
  const ran = result
    .filter(({ url }) => url.startsWith(prefix))
    .map(({ functions }) => functions.filter(({ ranges }) => ranges[0].count > 0).length)
    .filter((count) => count > 0);
  return `${ran.length} / ${ran.reduce((sum, count) => sum + count, 0)}`;
}

async function callPaths() {
  const directory = mkdtempSync(join(tmpdir(), 'gateway-house-'));
  const upstream = await startUpstream();
  const config = {
    providers: {
      up: {
        dialect: 'openai-chat',
        base_url: `http://127.0.0.1:${upstream.address().port}/v1`,
        api_key: 'k',
      },
    },
  };
  writeFileSync(join(directory, 'gateway.yaml'), JSON.stringify(config));
  const key = 'house-key-0123456789';
  const { startGateway } = await import(pathToFileURL(join(root, 'src/main.ts')).href);
  const gateway = await startGateway({
    flags: {
      listen: '127.0.0.1:0',
      'admin-listen': '127.0.0.1:0',
      'data-dir': join(directory, 'data'),
      config: join(directory, 'gateway.yaml'),
      'log-level': 'silent',
    },
    env: { MODEL_GATEWAY_KEY: key },
    cwd: directory,
  });
  const ask = (path, more) => async () => {
    const messages = [{ role: 'user', content: 'Hello' }];
    const answer = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'up/m', messages, ...more }),
    });
    const text = await answer.text();
    if (answer.status !== 200 || !text.includes('day.'))
      throw new Error(`${answer.status} ${text}`);
  };
  try {
    return {
      relayed: await coverageOf(ask('/v1/chat/completions', {})),
      translated: await coverageOf(ask('/v1/messages', { max_tokens: 100, stream: true })),
    };
  } finally {
    await gateway.stop();
    upstream.close();
    upstream.closeAllConnections();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

function testRun() {
  try {
    const times = JSON.parse(
      readFileSync(join(root, 'node_modules/.cache/test-times.json'), 'utf8'),
    );
    const minutesOf = (scope) =>
      times[`run ${scope}`] === undefined
        ? 'not run'
        : `${(times[`run ${scope}`].seconds / 60).toFixed(1)} min`;
    return `npm test ${minutesOf('test')}, test:all ${minutesOf('test:all')}`;
  } catch {
    return 'not run here';
  }
}

const sizes = sources.map(({ text }) => linesOf(text)).toSorted((a, b) => a - b);
const functions = programs.flatMap((program) => program.functions);
const sum = (list) => list.reduce((total, each) => total + each, 0);
const named = ids();
const paths = await callPaths();
const rows = [
  ['source lines / files', `${sum(sizes)} / ${sizes.length}`, '82452 / 722', '≤ 64000 / ≤ 320'],
  ['median file, lines', sizes[Math.floor(sizes.length / 2)], '89', '150–250'],
  [
    'longest file, lines',
    `${sizes.at(-1)} (${basename(sources.find(({ text }) => linesOf(text) === sizes.at(-1)).path)})`,
    '',
    '≤ 800',
  ],
  ['mean function, lines', (sum(functions) / functions.length).toFixed(1), '8.6', '12–18'],
  ['files / functions of a small relayed chat call', paths.relayed, '120 / 545', '≤ 60 / ≤ 300'],
  ['files / functions of a translated stream', paths.translated, '163 / 746', '≤ 80 / ≤ 400'],
  ['files with one importer, in the same folder', lonelyFiles(), '231', '≤ 40'],
  [
    'ids in comments that no document explains',
    `${named.unknown.length} of ${named.all}`,
    '98 of 226',
    '0',
  ],
  ['whole test run', testRun(), '13–26 min', 'npm test ≤ 5 min, all ≤ 20 min'],
];
const text = rows
  .map(([what, now, before, aim]) => `| ${what} | ${before} | ${now} | ${aim} |\n`)
  .join('');
process.stdout.write(`| | commit 3d9dd4f | now | aim |\n|---|---|---|---|\n${text}`);
const third = sources.filter(({ path }) =>
  /openai-responses|stored-response|api-choice/.test(path),
);
process.stdout.write(
  `\nThe third client dialect came after the aims were set: ${sum(third.map(({ text }) => linesOf(text)))} lines / ${third.length} files are its own.\n`,
);
if (named.unknown.length > 0)
  process.stdout.write(`\nids without a document: ${named.unknown.toSorted().join(' ')}\n`);
process.exit(0);
