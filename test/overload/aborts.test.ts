/** Clients that leave at every byte of their request and of its answer: all that was taken comes back (F70–F73, G4, G5). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { clientKey } from '../support/keys.ts';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { openRaw, startOverloadRig, until, type OverloadRig } from './overload-rig.ts';

interface Phase {
  readonly name: string;
  readonly path: string;
  readonly headers: readonly string[];
  readonly stream: boolean;
  readonly chunked: boolean;
}

const plain = { path: '/v1/chat/completions', headers: [], stream: true, chunked: false } as const;
const phases: readonly Phase[] = [
  { ...plain, name: 'a stream' },
  { ...plain, name: 'a document', stream: false },
  { ...plain, name: 'a body in chunks', chunked: true },
  { ...plain, name: 'a body that waits for its 100', headers: ['expect: 100-continue'] },
  { ...plain, name: 'an Idempotency-Key', headers: ['idempotency-key: k'] },
  { ...plain, name: 'a count', path: '/v1/messages/count_tokens' },
];

describe('clients that leave', { timeout: 500_000 }, () => {
  let rig: OverloadRig;
  before(async () => {
    rig = await startOverloadRig();
  });
  after(() => rig.stop());

  const bytesOf = (phase: Phase, model: string): { head: string; body: string } => {
    const body = JSON.stringify({
      ...requestBody(phase.path.includes('messages') ? 'messages' : 'chat', {
        model,
        stream: phase.stream,
      }),
    });
    const framed = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    const length = phase.chunked ? 'transfer-encoding: chunked' : `content-length: ${body.length}`;
    const lines = [`POST ${phase.path} HTTP/1.1`, 'host: x', `authorization: Bearer ${clientKey}`];
    return {
      head: [...lines, 'content-type: application/json', length, ...phase.headers, '\r\n'].join(
        '\r\n',
      ),
      body: phase.chunked ? framed : body,
    };
  };

  for (const phase of phases) {
    test(`F70 F71 F72 F73 G4 ${phase.name}: after each byte, and at each moment of the answer`, async () => {
      const text = 'word '.repeat(200);
      const { model } = rig.play('chat', replying('chat', { text }));
      const { head, body } = bytesOf(phase, model);
      const request = head + body;
      const leave = async (sent: number, answered: number): Promise<void> => {
        const connection = await openRaw(rig.gateway.url, request.slice(0, sent));
        if (answered > 0) {
          await until('a piece of the answer', () => connection.text().length >= answered);
        }
        connection.socket.destroy();
      };
      const cuts = Array.from({ length: 60 }, (_, i) => head.length - 5 + i).concat(
        Array.from({ length: 40 }, () => request.length),
      );
      await Promise.all(cuts.map((sent) => leave(sent, 0)));
      await Promise.all([1, 20, 100, 200].map((answered) => leave(request.length, answered)));
      await until('all is given back', async () => {
        const status = await rig.status();
        return (
          status['calls_held'] === 0 && status['body_memory'] === 0 && status['live_calls'] === 0
        );
      });
      const left = await rig.status();
      assert.deepEqual([left['calls_held'], left['body_memory']], [0, 0]);
    });
  }
});
