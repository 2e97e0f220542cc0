/** The bare relay as a subject: the floor of what Node itself costs, in the same rounds. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { tryParseObject } from '../src/json/parse.ts';
import { startHelper, subjectCore } from './child.ts';
import { isPort, perDialect } from './protocol.ts';
import type { RunningSubject, Subject } from './subject.ts';

/** Its name in the tables. */
export const bareName = 'bare node:http relay';

const manifest = createRequire(import.meta.url).resolve('undici/package.json');

export const bareRelay: Subject = {
  name: bareName,
  version: `(undici ${String(tryParseObject(readFileSync(manifest, 'utf8'))?.version)})`,
  key: 'bench',
  models: perDialect(() => 'm'),
  translates: false,
  warmUp: 'long',
  start: startBare,
};

async function startBare(mockPort: number): Promise<RunningSubject> {
  const relay = startHelper(join(import.meta.dirname, 'bare-relay.ts'), {
    core: subjectCore,
    args: [String(mockPort)],
  });
  const message = await relay.next();
  if (!isPort(message)) throw new Error('the bare relay did not say its port');
  return { port: message.port, pid: relay.pid, stop: () => relay.stop() };
}
