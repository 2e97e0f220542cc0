/** A parent that starts an engine, prints its socket path as JSON, and stays. */
import { tinyEngine } from './engine-client.ts';

const engine = tinyEngine();
await engine.ready();
process.stdout.write(`${JSON.stringify(engine.socketPath)}\n`);
