import assert from 'node:assert/strict';
import {
  appendFileSync,
  mkdirSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { ConfigWatch, fingerprint } from '../../../src/config/watch.ts';
import { temporaryFolder } from '../../support/folders.ts';

function watchConfig(file: string, onChange: () => void): ConfigWatch {
  const watch = new ConfigWatch(onChange);
  watch.follow([file]);
  return watch;
}

interface Watched {
  readonly directory: string;
  readonly file: string;
  readonly watch: ConfigWatch;
  /** Resolves at the next call of `onChange`. */
  next(): Promise<void>;
  calls(): number;
}

function watched(t: TestContext, prepare: (directory: string) => string): Watched {
  const directory = temporaryFolder('watch');
  const file = prepare(directory);
  let calls = 0;
  let wake: (() => void) | undefined;
  const watch = watchConfig(file, () => {
    calls += 1;
    wake?.();
  });
  // The watch itself does not keep the process alive; the test must.
  const alive = setInterval(() => undefined, 1000);
  t.after(() => {
    clearInterval(alive);
    watch.close();
  });
  const next = (): Promise<void> =>
    new Promise((resolve) => {
      wake = resolve;
    });
  return { directory, file, watch, next, calls: () => calls };
}

function plainFile(directory: string): string {
  const file = join(directory, 'gateway.yaml');
  writeFileSync(file, 'a: 1\n');
  return file;
}

test('N1: an edit in place, a replacement by rename and a removal with a new file are all seen', async (t) => {
  const { directory, file, next } = watched(t, plainFile);
  let change = next();
  writeFileSync(file, 'a: 22\n');
  await change;

  change = next();
  writeFileSync(join(directory, '.gateway.yaml.swp'), 'a: 333\n');
  renameSync(join(directory, '.gateway.yaml.swp'), file);
  await change;

  change = next();
  unlinkSync(file);
  writeFileSync(file, 'a: 4444\n');
  await change;

  // The watch still stands after all of that.
  change = next();
  writeFileSync(file, 'a: 55555\n');
  await change;
});

test('N1: a swapped link to another directory is seen, and so are edits behind it', async (t) => {
  const { directory, next } = watched(t, (root) => {
    for (const name of ['one', 'two']) {
      mkdirSync(join(root, name));
      writeFileSync(join(root, name, 'gateway.yaml'), `name: ${name}\n`);
    }
    mkdirSync(join(root, 'mount'));
    symlinkSync(join(root, 'one'), join(root, 'mount', '..data'));
    symlinkSync(join('..data', 'gateway.yaml'), join(root, 'mount', 'gateway.yaml'));
    return join(root, 'mount', 'gateway.yaml');
  });
  let change = next();
  symlinkSync(join(directory, 'two'), join(directory, 'mount', '..new'));
  renameSync(join(directory, 'mount', '..new'), join(directory, 'mount', '..data'));
  await change;

  change = next();
  writeFileSync(join(directory, 'two', 'gateway.yaml'), 'name: edited\n');
  await change;
});

test('a file that appears later is a change; other files of the directory are none', async (t) => {
  const { directory, file, next, calls } = watched(t, (root) => join(root, 'gateway.yaml'));
  writeFileSync(join(directory, 'other.txt'), 'x');
  const change = next();
  writeFileSync(file, 'a: 1\n');
  await change;
  assert.equal(calls(), 1);
});

test('a log that is written beside the file all the time does not put off the look', async (t) => {
  const { directory, file, next } = watched(t, plainFile);
  const log = join(directory, 'gateway.log');
  const change = next();
  // Far more often than the look waits.
  const writing = setInterval(() => appendFileSync(log, 'line\n'), 5);
  t.after(() => clearInterval(writing));
  writeFileSync(file, 'a: 22\n');
  await change;
});

test('a file that was written between its reading and the watch is a change, and an unchanged one is none', async (t) => {
  const directory = temporaryFolder('watch');
  const same = join(directory, 'tls.crt');
  const appeared = join(directory, 'gateway.yaml');
  writeFileSync(same, '1');
  const read = new Map([same, appeared].map((file) => [file, fingerprint(file)]));
  writeFileSync(appeared, 'a: 1\n');
  const changed = Promise.withResolvers<void>();
  let calls = 0;
  const watch = new ConfigWatch(() => {
    calls += 1;
    changed.resolve();
  });
  t.after(() => watch.close());
  const alive = setInterval(() => undefined, 1000);
  t.after(() => clearInterval(alive));
  watch.follow([same, appeared], read);
  await changed.promise;
  assert.equal(calls, 1);
});

test('after close nothing is called', async (t) => {
  const { file, calls } = watched(t, plainFile);
  const other = new Promise<void>((resolve) => {
    const second = watchConfig(file, () => {
      second.close();
      resolve();
    });
  });
  const closed = watchConfig(file, () => assert.fail('called after close'));
  closed.close();
  writeFileSync(file, 'a: 333\n');
  await other;
  assert.ok(calls() <= 1);
});

test('follows the files that it is given, and no others', async (t) => {
  const { directory, file, next, calls, watch } = watched(t, plainFile);
  const other = join(directory, 'tls.crt');
  writeFileSync(other, '1');
  watch.follow([file, other]);
  let change = next();
  writeFileSync(other, '22');
  await change;
  watch.follow([file]);
  writeFileSync(other, '333');
  change = next();
  writeFileSync(file, 'a: 4444\n');
  await change;
  assert.equal(calls(), 2);
});
