/** A worker's end and a parent's end of a real socket, both in this process. */
import { createConnection, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Counters } from '../../src/store/counters/counters.ts';
import type { Store } from '../../src/store/store.ts';
import {
  type SessionOperations,
  WorkerSession,
  Writes,
  remoteStore,
} from '../../src/compose/workers/session.ts';
import { Link } from '../../src/compose/workers/link.ts';
import { temporaryFolder } from '../support/folders.ts';
import { HeldClock, silentLog } from '../unit/access/fakes.ts';

const folder = temporaryFolder('linked');
let made = 0;

/** Two ends of one connection. */
export async function pair(): Promise<readonly [Socket, Socket]> {
  made += 1;
  const path = join(folder, `${made}.sock`);
  const { promise, resolve } = Promise.withResolvers<Socket>();
  const server = createServer(resolve);
  await new Promise<void>((listening) => {
    server.listen(path, listening);
  });
  const near = createConnection(path);
  const far = await promise;
  server.close();
  return [near, far];
}

export interface LinkedSession {
  readonly link: Link<SessionOperations>;
  readonly session: WorkerSession;
  readonly writes: Writes;
  close(): void;
}

/** A worker's way to a store and counters. */
export async function linkSession(
  store: Store,
  counters: Counters,
  clock = new HeldClock(),
): Promise<LinkedSession> {
  const [near, far] = await pair();
  const writes = new Writes(clock);
  const keysUsed = (): undefined => undefined;
  const allReported = async (): Promise<void> => {};
  const session = new WorkerSession({
    store,
    counters,
    clock,
    log: silentLog,
    writes,
    allReported,
    keysUsed,
  });
  const there = new Link({ stream: far, serve: session.operations });
  const link = new Link<SessionOperations>({ stream: near, serve: {} });
  const close = (): void => {
    link.close();
    there.close();
  };
  return { link, session, writes, close };
}

/** The store of a parent as its worker sees it; closing it closes both. */
export async function linkedStore(store: Store, counters: Counters): Promise<Store> {
  const linked = await linkSession(store, counters);
  return {
    ...remoteStore(linked.link),
    close: async () => {
      linked.close();
      await store.close();
    },
  };
}
