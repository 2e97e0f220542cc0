/**
 * deploy/compose.yaml, started: its services with programs of this machine in place of the images, as the users of the
 * images (G14). Grafana has no program here: files.test.ts compares its files with what it reads.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../support/folders.ts';
import { findCollector, noCollector } from './collector.ts';
import { findProgram } from '../support/server-process.ts';

/** Each by one of these names. */
const programs = [
  ['ip'],
  ['nsenter'],
  ['setpriv'],
  ['unshare'],
  ['nginx'],
  ['prometheus'],
  ['redis-server', 'valkey-server'],
  ['redis-cli', 'valkey-cli'],
  ['initdb'],
  ['pg_isready'],
];
const namespaces = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'];
/** They go with the first process. */
const begin = 'mount --make-rprivate / && mount -t tmpfs tmpfs /run && exec "$@"';

function whatIsMissing(): string | false {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'left out: only root of Linux can make the networks of deploy/compose.yaml';
  const folders = globSync('/usr/lib/postgresql/*/bin');
  const lacks = programs.filter((names) => findProgram(names, folders) === undefined);
  if (lacks.length > 0)
    return `left out: ${lacks.map(([name]) => name).join(', ')} not on this machine (apt-get install iproute2 util-linux nginx-light prometheus redis-server postgresql)`;
  const bridge = 'ip link add br0 type bridge && ip link add va type veth peer name vb';
  const { status } = spawnSync('unshare', [
    ...namespaces,
    'sh',
    '-c',
    begin,
    'sh',
    'sh',
    '-c',
    bridge,
  ]);
  return status === 0 ? false : 'left out: this machine lets no process make a network of its own';
}

test(
  'G14 compose.yaml: both gateways answer behind nginx on one PostgreSQL and Valkey, are scraped, send spans, and one is replaced without a refused call',
  { skip: whatIsMissing(), timeout: 300_000 },
  async (t) => {
    const folder = temporaryFolder('compose');
    if (findCollector() === undefined)
      t.diagnostic(`a server of this test takes spans: ${noCollector}`);
    const stand = [process.execPath, '--disable-warning=ExperimentalWarning'];
    const program = [...stand, join(import.meta.dirname, 'compose-stand.ts'), folder];
    const child = spawn('unshare', [...namespaces, 'sh', '-c', begin, 'sh', ...program], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    t.after(() => child.kill('SIGKILL'));
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (said += text));
    }
    const [status]: unknown[] = await once(child, 'close');
    assert.equal(status, 0, said);
  },
);
