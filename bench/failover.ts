/**
 * What a call loses on a target that is down (G13): one that refuses connections, one that swallows them,
 * and both once five failures took them out. Beside the same call to a target that answers, in turn.
 * Usage: node bench/failover.ts [calls, default 200]
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, createServer, request, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { everyCore } from './child.ts';
import { gatewayKey, startGateway } from './gateway.ts';

const calls = Number(process.argv[2] ?? '200');
/** Failures in a row after which a target is out. */
const untilOut = 5;
const connectMs = 2000;

/** In ms; a bound is exceeded by its median. */
interface Figure {
  readonly what: string;
  readonly samples: readonly number[];
  readonly most: number;
}

const answer = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 0,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Here.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});

const upstream = createServer((incoming, outgoing) => {
  incoming.resume();
  incoming.on('end', () => {
    outgoing.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  });
});
const port = await listening(upstream);
const dead = await closedPort();
const hole = await blackHole();
/** A target of its own for each refused call that is measured: the first four of each count. */
const fresh = Math.ceil(calls / (untilOut - 1));
const gateway = await startGateway({ mockPort: port, core: everyCore.name, config: config() });
const agent = new Agent({ keepAlive: true });
try {
  for (let i = 0; i < 100; i += 1) await timed('mock/m');
  const figures = [await refused(), await swallowed(), await out('dead'), await out('hole')];
  print(figures);
  process.exitCode = figures.every(({ samples, most }) => median(samples) <= most) ? 0 : 1;
} finally {
  agent.destroy();
  await gateway.stop();
  hole.stop();
  upstream.close();
  upstream.closeAllConnections();
}

function config(): string {
  const provider = (id: string, at: number): string =>
    `  ${id}: { dialect: openai-chat, base_url: 'http://127.0.0.1:${at}/v1', api_key: bench }\n`;
  const route = (name: string, target: string): string =>
    `  ${name}: { targets: [${target}, mock/m] }\n`;
  const names = Array.from({ length: fresh }, (_, i) => `refused-${i}`);
  return [
    provider('dead', dead),
    provider('hole', hole.port),
    'models:\n',
    ...names.map((name) => route(name, `dead/${name}`)),
    route('hole-first', 'hole/first'),
    route('out-dead', 'dead/out'),
    route('out-hole', 'hole/out'),
  ].join('');
}

/** Connections are refused: what the way to the next target adds. */
async function refused(): Promise<Figure> {
  const samples: number[] = [];
  for (let i = 0; i < fresh; i += 1) {
    for (let k = 1; k < untilOut; k += 1) samples.push(await added(`refused-${i}`, 2));
  }
  return { what: 'refused', samples, most: 50 };
}

/** Connections are swallowed: the time until one is given up. */
async function swallowed(): Promise<Figure> {
  const samples: number[] = [];
  for (let k = 1; k < untilOut; k += 1) samples.push(await added('hole-first', 2));
  return { what: 'swallowed', samples, most: connectMs + 50 };
}

/** The target was taken out: calls go to the next one. Those that find out whether it is back are apart. */
async function out(kind: 'dead' | 'hole'): Promise<Figure> {
  for (let k = 0; k < untilOut; k += 1) await timed(`out-${kind}`);
  const samples: number[] = [];
  while (samples.length < calls) {
    const before = await timed('mock/m');
    const { ms, attempts } = await timed(`out-${kind}`);
    if (attempts === 1) samples.push(ms - before.ms);
  }
  return { what: `${kind === 'dead' ? 'refused' : 'swallowed'}, out`, samples, most: 5 };
}

/** Ms that the call takes more than one to the target that answers. */
async function added(model: string, tries: number): Promise<number> {
  const before = await timed('mock/m');
  const { ms, attempts } = await timed(model);
  if (attempts !== tries) throw new Error(`${model}: ${attempts} tries, not ${tries}`);
  return ms - before.ms;
}

function timed(model: string): Promise<{ readonly ms: number; readonly attempts: number }> {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] });
  const began = performance.now();
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        agent,
        port: gateway.port,
        host: '127.0.0.1',
        path: '/v1/chat/completions',
        method: 'POST',
        headers: {
          authorization: `Bearer ${gatewayKey}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        },
      },
      (reply) => {
        let text = '';
        reply.setEncoding('utf8').on('data', (piece: string) => (text += piece));
        reply.on('end', () => {
          const ms = performance.now() - began;
          if (reply.statusCode !== 200) reject(new Error(`${model}: ${reply.statusCode} ${text}`));
          else resolve({ ms, attempts: Number(reply.headers['x-gateway-attempts']) });
        });
      },
    );
    asked.on('error', reject);
    asked.end(body);
  });
}

function print(figures: readonly Figure[]): void {
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
  const ms = (value: number): string => `${value.toFixed(1)} ms`;
  process.stdout.write(row(['first target', 'calls', 'added, median', 'p99', 'at most']));
  process.stdout.write(row(['---', '---', '---', '---', '---']));
  for (const { what, samples, most } of figures) {
    const worst = quantile(samples, 0.99);
    process.stdout.write(
      row([what, String(samples.length), ms(median(samples)), ms(worst), ms(most)]),
    );
  }
}

function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}

function quantile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** A port without a listener. */
async function closedPort(): Promise<number> {
  const server = createServer();
  const found = await listening(server);
  server.close();
  await once(server, 'close');
  return found;
}

/** A listener that takes no connections: its queue is full, so that the kernel drops what else comes. */
async function blackHole(): Promise<{ readonly port: number; stop(): void }> {
  const script = `const s=require('node:net').createServer();s.listen({port:0,host:'127.0.0.1',backlog:1},()=>{require('node:fs').writeSync(1,String(s.address().port)+'\\n');Atomics.wait(new Int32Array(new SharedArrayBuffer(4)),0,0)})`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const at = Number(line.toString());
  const sockets: Socket[] = Array.from({ length: 8 }, () => connect(at, '127.0.0.1'));
  for (const socket of sockets) socket.on('error', () => undefined);
  await new Promise((resolve) => setTimeout(resolve, 300));
  return {
    port: at,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      child.kill('SIGKILL');
    },
  };
}
