/** When an engine's stream is written. */
import assert from 'node:assert/strict';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { StreamWriter } from '../../../src/engine/chat.ts';

const head = {
  id: 'chatcmpl-1',
  createdSeconds: 1,
  model: 'm',
  promptTokens: 3,
  newId: (prefix: string) => `${prefix}1`,
  textOf: () => '',
  logprobs: false,
  choices: 1,
};
const outcome = {
  finishReason: 'stop',
  completionTokens: 3,
  reasoningTokens: 0,
  cachedTokens: 0,
} as const;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a token is written while the next is computed, the end at once, all in order', async (t) => {
  const written: string[] = [];
  const counts: number[] = [];
  const told = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    const write = response.write.bind(response);
    response.write = (frame: unknown, ...rest: []) => {
      written.push(String(frame));
      return write(frame, ...rest);
    };
    const writer = new StreamWriter(response, head, false);
    void (async () => {
      writer.begin();
      counts.push(written.length);
      writer.text('one');
      await turn();
      // The library begins to compute in this turn of the loop, or has begun.
      counts.push(written.length);
      await turn();
      await turn();
      counts.push(written.length);
      writer.text('two');
      writer.keepAlive();
      writer.endChoice(outcome);
      writer.finish(outcome);
      await turn();
      await turn();
      await turn();
      counts.push(written.length);
      told.resolve();
    })();
  });
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const isPlace = (value: typeof address): value is AddressInfo => typeof value === 'object';
  assert.ok(isPlace(address));
  const text = await new Promise<string>((resolve, reject) => {
    get({ host: '127.0.0.1', port: address.port }, (response) => {
      let all = '';
      response.setEncoding('utf8');
      response.on('data', (piece: string) => (all += piece));
      response.on('end', () => resolve(all));
    }).on('error', reject);
  });
  await told.promise;
  assert.deepEqual(counts, [1, 1, 2, 2]);
  assert.match(text, /"role".*"one".*"two".*: waiting\n\n.*"stop".*data: \[DONE\]\n\n$/s);
});
