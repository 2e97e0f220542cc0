/**
 * Runs in a network namespace of its own, which has nothing but an idle loopback: brings that up, leads
 * the given ports to the sockets `FOLDER/PORT.sock` of the outside, and runs a command to its end.
 * Usage: node inside.ts FOLDER PORT[,PORT…] COMMAND [ARGUMENT…]
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';

const [folder = '', ports = '', command = '', ...args] = process.argv.slice(2);
const up = spawnSync('ip', ['link', 'set', 'lo', 'up'], { encoding: 'utf8' });
if (up.status !== 0) throw new Error(`no loopback: ${up.error?.message ?? up.stderr}`);
for (const port of ports.split(',')) {
  const server = createServer({ allowHalfOpen: true }, (inner) => {
    const outer = connect({ path: join(folder, `${port}.sock`), allowHalfOpen: true });
    inner.on('error', () => outer.destroy());
    outer.on('error', () => inner.resetAndDestroy());
    inner.on('close', () => outer.destroy());
    outer.on('close', () => inner.destroy());
    inner.pipe(outer).pipe(inner);
  });
  server.listen(Number(port), '127.0.0.1');
  await once(server, 'listening');
}
const child = spawn(command, args, { stdio: 'inherit' });
child.on('error', (error) => {
  process.stderr.write(`${command}: ${error.message}\n`);
  process.exit(127);
});
child.on('exit', (code, signal) => process.exit(signal === null ? (code ?? 1) : 128));
