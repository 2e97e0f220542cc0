/** What a call was told of its answer, in order: status, pieces, end or failure. */
import type { HttpClient } from '../../../../src/wire/http-client.ts';

export interface Seen {
  readonly exchange: ReturnType<HttpClient['send']>;
  readonly seen: readonly string[];
  /** Called at each piece: for whoever wants to stop at what he is given. */
  readonly taking: { data: () => void };
}

/** Asks a server for `/`, and writes down what comes. */
export function sendAndSee(client: HttpClient, origin: string): Seen {
  const seen: string[] = [];
  const taking = { data: (): void => undefined };
  const exchange = client.send(
    { endpoint: { origin, path: '/', headers: [] }, method: 'GET', headers: [], connectMs: 30_000 },
    {
      head: (status) => seen.push(String(status)),
      data: (chunk) => {
        seen.push(chunk.toString());
        taking.data();
      },
      end: () => seen.push('end'),
      failed: ({ code }) => seen.push(code),
    },
  );
  return { exchange, seen, taking };
}

/** Resolves when all sockets were looked at once more: what was freed before may be used again. */
export async function looked(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
