import assert from 'node:assert/strict';
import { globSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { tryParseObject } from '../../../src/json/parse.ts';
import { LineLog, type LogLevel, prettyFor, prettyLine } from '../../../src/observe/log.ts';
import { temporaryFolder } from '../../support/folders.ts';

function written(level: LogLevel, use: (log: LineLog) => void, made?: number) {
  return writtenText(level, use, made).lines;
}

const tick = new Int32Array(new SharedArrayBuffer(4));

/**
 * What the log wrote: one object a line, and as text. Its file stays open: a timer of the log may write to the descriptor
 * after the test, and once closed that number would be a socket of another test in this process.
 * @param made number of lines that are written or dropped, where they fill more than a block: a block that a thread
 *   writes while the log is flushed is waited for
 */
function writtenText(level: LogLevel, use: (log: LineLog) => void, made = 0) {
  const folder = temporaryFolder('log-test');
  const path = join(folder, 'log');
  const fd = openSync(path, 'w');
  const clock = { now: () => 0, wall: () => Date.UTC(2026, 10, 21) };
  const log = new LineLog({ fd, level, clock });
  use(log);
  log.flush();
  const lineCount = (): number => readFileSync(path, 'utf8').split('\n').length - 1;
  const deadline = performance.now() + 60_000;
  while (lineCount() + log.dropped < made && performance.now() < deadline)
    Atomics.wait(tick, 0, 0, 5);
  const text = readFileSync(path, 'utf8');
  return { lines: text.split('\n').slice(0, -1).map(tryParseObject), text };
}

test('S13: one object a line, control characters escaped', () => {
  const [line, ...more] = written('info', (log) =>
    log.info('call', { name: 'a\nb\u001b[31m', n: 1 }),
  );
  assert.deepEqual(line, {
    time: '2026-11-21T00:00:00.000Z',
    level: 'info',
    event: 'call',
    name: 'a\nb\u001b[31m',
    n: 1,
  });
  assert.equal(more.length, 0);
});

test('S13: nothing in a line is obeyed by a terminal, and all of it is read back', () => {
  const every = String.fromCharCode(
    ...Array.from({ length: 0xa0 }, (_, code) => code),
    0x61c,
    0x200e,
    0x2028,
    0x2029,
    0x202e,
    0x2066,
    0xe9,
    0x4f60,
  );
  const { lines, text } = writtenText('info', (log) => {
    log.info(every, { [every]: every });
    log.warn('next');
  });
  assert.equal(lines.length, 2);
  assert.equal(lines[0]?.['event'], every);
  assert.equal(lines[0]?.[every], every);
  assert.doesNotMatch(text.replaceAll('\n', ''), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  assert.match(text, /é你/);
});

test('the time of a line is that of its millisecond, within a second and beyond it', () => {
  const folder = temporaryFolder('log-test');
  const path = join(folder, 'log');
  const fd = openSync(path, 'w');
  const start = Date.UTC(2026, 11, 31, 23, 59, 59);
  const times = [0, 7, 42, 999, 1000, 1001, 61_100, 500, -1].map((ms) => start + ms);
  let wall = 0;
  const log = new LineLog({ fd, level: 'info', clock: { now: () => 0, wall: () => wall } });
  for (wall of times) log.info('call');
  log.flush();
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  assert.deepEqual(
    lines.map((line) => tryParseObject(line)?.['time']),
    times.map((at) => new Date(at).toISOString()),
  );
});

test('lines below the level are not written; fields may be absent or empty', () => {
  const lines = written('warn', (log) => {
    log.info('quiet');
    log.warn('bare');
    log.error('empty', {});
    log.error('gaps', { a: undefined, b: null });
  });
  assert.deepEqual(
    lines.map((line) => line?.['event']),
    ['bare', 'empty', 'gaps'],
  );
});

test('lines beyond a block are all written, none twice', () => {
  const lines = written(
    'info',
    (log) => {
      for (let i = 0; i < 1000; i++) log.info('line', { i, text: 'é'.repeat(300) });
    },
    1000,
  );
  assert.deepEqual(
    // The block that was on its way when the log was flushed may come in behind the others.
    lines.map((line) => Number(line?.['i'])).sort((a, b) => a - b),
    Array.from({ length: 1000 }, (_, i) => i),
  );
});

test('F95: what a sink does not take is dropped and counted, a giant line is shortened', () => {
  const lines = written(
    'info',
    (log) => {
      for (let i = 0; i < 2000; i++) log.info('line', { i, text: 'x'.repeat(1000) });
    },
    2000,
  );
  assert.ok(lines.length < 2000 && lines.length > 500);
  const [long] = written('info', (log) => log.info('long', { text: 'x'.repeat(100_000) }));
  assert.ok(Number(long?.['too_long']) > 100_000);
});

test('S13 issue 8 lines for a terminal: one a call, nothing obeyed, colours only where wanted', () => {
  const evil = 'a\nb\u001b[2J\u009b31m\u202e" c';
  const fields = { model: evil, [evil]: 1, plain: 'up-chat/gpt-5', ms: 1.5, absent: undefined };
  const parts = { time: '2026-11-21T23:10:11.012Z', level: 'warn', event: 'call', fields };
  const plain = prettyLine(parts, false);
  assert.ok(plain.startsWith('23:10:11.012 WARN  call model="a\\nb'), plain);
  assert.ok(plain.endsWith(' plain=up-chat/gpt-5 ms=1.5'), plain);
  assert.doesNotMatch(plain, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  const coloured = prettyLine({ ...parts, event: evil }, true);
  const left = ['0', '2', '33'].reduce(
    (text, colour) => text.replaceAll(`\u001b[${colour}m`, ''),
    coloured,
  );
  assert.doesNotMatch(left, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
});

test('issue 8.6 FORCE_COLOR and NO_COLOR hold for the log as for tables; files and pipes get JSON', () => {
  assert.equal(prettyFor(true, {}), 'coloured');
  assert.equal(prettyFor(true, { NO_COLOR: '1' }), 'plain');
  assert.equal(prettyFor(true, { TERM: 'dumb' }), 'plain');
  assert.equal(prettyFor(true, { FORCE_COLOR: '1', NO_COLOR: '1' }), 'coloured');
  assert.equal(prettyFor(true, { FORCE_COLOR: '1', TERM: 'dumb' }), 'coloured');
  assert.equal(prettyFor(true, { FORCE_COLOR: '0' }), 'plain');
  assert.equal(prettyFor(true, { FORCE_COLOR: 'false' }), 'plain');
  assert.equal(prettyFor(false, { FORCE_COLOR: '1' }), undefined);
});

test('issue 8 names of events have no hyphens: who looks for one in a log need not know whose it is', () => {
  const source = join(import.meta.dirname, '../../../src');
  const names = globSync('**/*.ts', { cwd: source }).flatMap((file) =>
    [
      ...readFileSync(join(source, file), 'utf8').matchAll(
        /\b(?:debug|info|warn|error)\(\s*'([^']+)'/g,
      ),
    ].map(([, name = '']) => name),
  );
  assert.ok(names.length > 60, String(names.length));
  assert.deepEqual(
    names.filter((name) => name.includes('-')),
    [],
  );
});

test('lines that are held back come behind those that are not, with their own times, and at the end at the latest', () => {
  const events = (lines: ReturnType<typeof written>): unknown[] =>
    lines.map((line) => line?.['event']);
  const released = written('info', (log) => {
    log.hold();
    log.info('started');
    log.warn('broken');
    log.release();
    log.info('later');
  });
  assert.deepEqual(events(released), ['broken', 'started', 'later']);
  const failed = written('info', (log) => {
    log.hold();
    log.info('started');
  });
  assert.deepEqual(events(failed), ['started']);
});
