// Installs the agents that test/agents drives through the gateway, at pinned versions, into .agents/
// (ignored by git, no dependency of this package). Opt-in: `npm run agents:install`. Needs the npm
// registry, about 1 GB and no root; for the Python library, Python and PyPI. Nothing that the packages
// bring is run but `--version`.
// The native programs are installed directly: their wrapper packages only choose among them.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

const folder = join(import.meta.dirname, '..', '.agents');
const windows = process.platform === 'win32';
const isMusl =
  process.platform === 'linux' &&
  process.report?.getReport().header.glibcVersionRuntime === undefined;
const musl = isMusl ? '-musl' : '';
const exe = windows ? '.exe' : '';

/** Nothing of the packages is run, and a registry that cannot be reached is given up soon. */
const npmOptions = [
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--loglevel=error',
  '--fetch-retries=1',
  '--fetch-retry-mintimeout=1000',
];

/** Each with the version that the documents describe, and what to run, below node_modules. */
const agents = [
  {
    name: 'claude-code',
    version: '2.1.329',
    package: `@anthropic-ai/claude-code-${process.platform}-${process.arch}${musl}`,
    command: `claude${exe}`,
  },
  {
    name: 'opencode',
    version: '1.18.33',
    // The baseline build runs on every x64 processor.
    package: `opencode-${windows ? 'windows' : process.platform}-${process.arch}${
      process.arch === 'x64' ? '-baseline' : ''
    }${musl}`,
    command: `bin/opencode${exe}`,
  },
  { name: 'qwen-code', version: '0.24.4', package: '@qwen-code/qwen-code', command: 'cli.js' },
  {
    name: 'pi',
    // Of later versions the registry lacks a package that they need.
    version: '0.87.1',
    package: '@earendil-works/pi-coding-agent',
    command: 'dist/cli.js',
  },
  { name: 'continue', version: '1.5.47', package: '@continuedev/cli', command: 'dist/cn.js' },
  {
    name: 'codex',
    version: '0.169.0',
    package: `@openai/codex-${process.platform}-${process.arch}`,
    // The native programs are versions of one package.
    spec: `npm:@openai/codex@0.169.0-${process.platform}-${process.arch}`,
    command: `vendor/${codexTarget()}/bin/codex${exe}`,
  },
  {
    // For the code that `connect` prints: its first package stands for all of them.
    name: 'libraries',
    version: '7.0.173',
    package: 'ai',
    command: 'package.json',
    others: {
      '@ai-sdk/anthropic': '4.0.105',
      '@ai-sdk/openai': '4.0.118',
      '@ai-sdk/openai-compatible': '3.0.92',
      '@anthropic-ai/sdk': '1.11.0',
      '@langchain/anthropic': '1.5.11',
      '@langchain/core': '1.4.0',
      '@langchain/openai': '1.6.0',
      '@openai/agents': '0.20.0',
      openai: '7.57.0',
      zod: '4.6.7',
    },
  },
  { name: 'python-openai', version: '3.54.0', python: 'openai' },
];

const wanted = process.argv.slice(2);
const chosen = agents.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
const unknown = wanted.find((name) => !agents.some((agent) => agent.name === name));
if (unknown !== undefined) {
  console.error(`${unknown}: unknown agent; known: ${agents.map(({ name }) => name).join(', ')}`);
  process.exit(1);
}

// Tests of agents wait for this process (scripts/test-plan.mjs).
mkdirSync(folder, { recursive: true });
const installing = join(folder, 'installing');
writeFileSync(installing, String(process.pid));
process.once('exit', () => rmSync(installing, { force: true }));

const list = join(folder, 'agents.json');
/** Version and program of those that are there and start, by name. */
const installed = existsSync(list) ? JSON.parse(readFileSync(list, 'utf8')) : {};
for (const agent of chosen) {
  const { name, version } = agent;
  const problem = problemWith(agent);
  if (problem === undefined) {
    installed[name] = { version, program: relative(folder, programOf(agent)) };
    console.log(`${name} ${version}: installed`);
  } else {
    delete installed[name];
    process.exitCode = 1;
    console.error(`${name} ${version}: not installed: ${problem}`);
  }
}
if (existsSync(list) || Object.keys(installed).length > 0) {
  writeFileSync(list, `${JSON.stringify(installed, null, 2)}\n`);
  const names = Object.keys(installed);
  console.log(`In ${folder}: ${names.join(', ') || 'none'}; \`npm test\` drives what is there`);
}

/** How Rust calls this platform. */
function codexTarget() {
  const processor = process.arch === 'arm64' ? 'aarch64' : 'x86_64';
  if (process.platform === 'darwin') return `${processor}-apple-darwin`;
  return `${processor}-${windows ? 'pc-windows-msvc' : 'unknown-linux-musl'}`;
}

function programOf({ name, package: id, command, python }) {
  if (python !== undefined)
    return join(folder, name, windows ? 'Scripts/python.exe' : 'bin/python');
  return join(folder, name, 'node_modules', id, command);
}

/** Why it could not be installed, or nothing. */
function problemWith(agent) {
  try {
    return agent.python === undefined ? install(agent) : installPython(agent);
  } catch (error) {
    return error.message;
  }
}

function install(agent) {
  const { name, version, package: id, spec = version, command, others } = agent;
  const program = programOf(agent);
  if (startedVersion(program) === version && hasAll(agent)) return undefined;
  const home = join(folder, name);
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  writeFileSync(
    join(home, 'package.json'),
    JSON.stringify({ private: true, dependencies: { [id]: spec, ...others } }),
  );
  const npm = spawnSync('npm', ['install', ...npmOptions], {
    cwd: home,
    encoding: 'utf8',
    timeout: 300_000,
    shell: windows,
  });
  if (npm.error !== undefined) return `npm: ${npm.error.message}`;
  if (npm.status !== 0) return `npm install ${id}@${version} failed:\n${npm.stderr.trim()}`;
  if (!existsSync(program)) return `${id}@${version} has no ${command}`;
  const found = startedVersion(program);
  return found === version ? undefined : `its --version says ${found ?? 'nothing'}`;
}

/** Into an environment of its own; wheels only, so that no code of a package runs. */
function installPython(agent) {
  const { name, version, python } = agent;
  const program = programOf(agent);
  const script = `import importlib.metadata as m; print(m.version(${JSON.stringify(python)}))`;
  const isThere = () =>
    existsSync(program) &&
    spawnSync(program, ['-c', script], { encoding: 'utf8' }).stdout?.trim() === version;
  if (isThere()) return undefined;
  const home = join(folder, name);
  rmSync(home, { recursive: true, force: true });
  const wanted = `${python}==${version}`;
  const pip = ['install', '--only-binary=:all:', '--no-input', '--quiet', '--retries=1', wanted];
  for (const [file, ...args] of [
    [windows ? 'python' : 'python3', '-m', 'venv', home],
    [program, '-m', 'pip', '--disable-pip-version-check', ...pip],
  ]) {
    const step = spawnSync(file, args, { encoding: 'utf8', timeout: 300_000 });
    if (step.error !== undefined) return `${file}: ${step.error.message}`;
    if (step.status !== 0) return `${file} ${args.join(' ')} failed:\n${step.stderr.trim()}`;
  }
  return isThere() ? undefined : `${wanted} is not there`;
}

/** Whether its further packages are there in their versions, too. */
function hasAll({ name, others = {} }) {
  const versionOf = (id) => {
    const file = join(folder, name, 'node_modules', id, 'package.json');
    return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : undefined;
  };
  return Object.entries(others).every(([id, version]) => versionOf(id) === version);
}

/** The version that a program prints, run with a home of its own. */
function startedVersion(program) {
  if (!existsSync(program)) return undefined;
  if (program.endsWith('.json')) return JSON.parse(readFileSync(program, 'utf8')).version;
  const home = mkdtempSync(join(tmpdir(), 'agent-version-'));
  try {
    const [file, ...first] = program.endsWith('.js') ? [process.execPath, program] : [program];
    const { stdout } = spawnSync(file, [...first, '--version'], {
      encoding: 'utf8',
      timeout: 60_000,
      env: { PATH: process.env.PATH, HOME: home, TMPDIR: home },
    });
    return /\d+\.\d+\.\d+/.exec(stdout ?? '')?.[0];
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
