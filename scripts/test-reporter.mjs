// Reports the results of a process as JSON lines: each test, and what the process took. A process whose tests have all
// ended and that does not exit is ended, and says what keeps it open; so it does on SIGALRM, its limit.
import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';

/** Longer than what is closed behind the last test takes on a busy machine, such as a server that drains. */
const exitMs = Number(process.env.TEST_EXIT_MS ?? 60_000);

// Tests replace the timers of `globalThis` (t.mock.timers).
const { setTimeout, clearTimeout } = globalThis;

// Node takes a reporter as the default export of its module.
// oxlint-disable-next-line import/no-default-export
export default async function* report(source) {
  const path = [];
  const begun = new Set();
  let open = 0;
  let exit;
  process.once('SIGALRM', () => end(`these tests have not ended: ${[...begun].join(', ')}`));
  for await (const { type, data } of source) {
    if (type === 'test:enqueue') open += 1;
    if (type === 'test:dequeue') begun.add(data.name);
    if (type === 'test:complete') {
      open -= 1;
      begun.delete(data.name);
    }
    clearTimeout(exit);
    // It does not keep the process open itself.
    if (open === 0) exit = setTimeout(end, exitMs, 'all tests have ended, not the process').unref();
    // An error that belongs to no test: the runner ends with 1, and says why only here.
    if (type === 'test:diagnostic' && data.message.startsWith('Error: ')) {
      yield line({
        passed: false,
        name: 'outside of a test',
        file: data.file,
        error: data.message,
      });
    }
    if (type === 'test:start') path[data.nesting] = data.name;
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    // Files that share a process are imported at once: a suite may come to stand in that of another file.
    const suites = path.slice(0, data.nesting).filter((name) => !name.endsWith('.test.ts'));
    yield line({
      passed: type === 'test:pass',
      name: [...suites, data.name].join(' › '),
      file: data.file,
      left: data.skip !== undefined || data.todo !== undefined,
      ...detailsOf(data.details),
    });
  }
  yield line({ cpu: cpuSeconds() });
}

function end(why) {
  process.stderr.write(`${why}; open are: ${process.getActiveResourcesInfo().join(', ')}\n`);
  process.exit(1);
}

function detailsOf({ type, duration_ms: ms, error }) {
  const suite = type === 'suite';
  if (error === undefined) return { suite, ms };
  return { suite, ms, failure: error.failureType, error: textOf(error.cause ?? error) };
}

function line(value) {
  return `${JSON.stringify(value)}\n`;
}

function textOf(cause) {
  return cause instanceof Error && cause.stack !== undefined
    ? inspect(cause, { depth: 4 })
    : String(cause);
}

/** Of this process and of those it started and saw end; in seconds. */
function cpuSeconds() {
  const { user, system } = process.cpuUsage();
  const own = (user + system) / 1e6;
  try {
    const [, fields = ''] = readFileSync('/proc/self/stat', 'utf8').split(') ');
    const [childUser, childSystem] = fields.split(' ').slice(13, 15).map(Number);
    return own + (childUser + childSystem) / 100;
  } catch {
    return own;
  }
}
