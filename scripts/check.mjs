// Format, lint and types in parallel, each on a core of its own, and then the unit tests.
// Usage: node scripts/check.mjs [--no-tests]
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const looks = ['format:check', 'lint', 'types'];
const tests = ['scripts/test.mjs', 'test/unit', 'test/architecture.test.ts'];

/** Runs a script of package.json; its output is printed in one piece. */
async function look(name) {
  const child = spawn('npm', ['run', '--silent', name], { stdio: ['ignore', 'pipe', 'pipe'] });
  const said = [];
  child.stdout.on('data', (piece) => said.push(piece));
  child.stderr.on('data', (piece) => said.push(piece));
  const [code] = await once(child, 'close');
  process.stdout.write(Buffer.concat(said));
  if (code !== 0) process.stdout.write(`npm run ${name} failed\n`);
  return code === 0;
}

const passed = await Promise.all(looks.map(look));
if (passed.includes(false)) process.exit(1);
// Where `npm test` follows: it has the unit tests.
if (process.argv.includes('--no-tests')) process.exit(0);
const [code] = await once(spawn(process.execPath, tests, { stdio: 'inherit' }), 'close');
process.exitCode = code ?? 1;
