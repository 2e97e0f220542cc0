/**
 * an upstream that answers a request on a used connection with what it answered there before. Where connections are
 * not for all, no such answer is another caller's.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { startLimitedRig, type LimitedKey, type LimitedRig } from '../limits/limited-rig.ts';
import {
  type ClientDialect,
  clientDialects,
  upstreamDialects,
  type UpstreamDialect,
} from '../support/dialects.ts';
import { providerAt } from '../support/gateway.ts';
import { requestBody } from '../support/requests.ts';
import { chatDocument } from '../upstream/chat.ts';
import { converseDocument } from '../upstream/converse.ts';
import { geminiDocument } from '../upstream/gemini.ts';
import { messagesDocument } from '../upstream/messages.ts';
import { responsesDocument, textItem } from '../upstream/responses.ts';

const documents: { readonly [D in UpstreamDialect]: (text: string) => JsonObject } = {
  chat: (text) => chatDocument({ text }),
  messages: (text) => messagesDocument({ text }),
  responses: (text) => responsesDocument([textItem(text)]),
  gemini: (text) => geminiDocument({ parts: [{ text }] }),
  converse: (text) => converseDocument({ content: [{ text }] }),
};
/** Each answer holds the question; on a used connection it is the one before. */
class Echo {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(dialect: UpstreamDialect) {
    this.#server = createServer((socket) => this.#serve(socket, dialect));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async open(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #serve(socket: Socket, dialect: UpstreamDialect): void {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket)).on('error', () => undefined);
    let late: string | undefined;
    let text = '';
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1');
      const at = text.indexOf('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (at === -1 || text.length < at + 4 + length) return;
      const { messages, input, contents } = tryParseObject(text.slice(at + 4)) ?? {};
      const asked = JSON.stringify(messages ?? input ?? contents ?? '');
      text = '';
      const own = JSON.stringify(documents[dialect](/asks-\w+/.exec(asked)?.[0] ?? ''));
      const body = late ?? own;
      late = own;
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
    });
  }
}

describe('X-3 an upstream that mixes up answers', { timeout: 300_000 }, () => {
  const echoes = {
    chat: new Echo('chat'),
    messages: new Echo('messages'),
    responses: new Echo('responses'),
    gemini: new Echo('gemini'),
    converse: new Echo('converse'),
  };
  let rig: LimitedRig;
  const keys: { [name: string]: LimitedKey } = {};
  before(async () => {
    for (const echo of Object.values(echoes)) await echo.open();
    const providers = Object.fromEntries(
      upstreamDialects.flatMap((dialect) =>
        ['shared', 'per-team', 'per-key', 'per-call'].map((connections) => [
          `${dialect}-${connections}`,
          providerAt(dialect, echoes[dialect].port, { connections }),
        ]),
      ),
    );
    rig = await startLimitedRig({ providers });
    keys['anna'] = await rig.key({ team: 'red' });
    keys['bert'] = await rig.key({ team: 'red' });
    keys['carl'] = await rig.key({ team: 'blue' });
    keys['dora'] = await rig.key();
  });
  after(async () => {
    await rig.stop();
    for (const echo of Object.values(echoes)) echo.close();
  });

  /** Who got whose answers, of some rounds of calls one after the other. */
  async function mixed(
    client: ClientDialect,
    upstream: UpstreamDialect,
    connections: string,
  ): Promise<Set<string>> {
    const found = new Set<string>();
    for (let round = 0; round < 4; round++) {
      for (const [name, key] of Object.entries(keys)) {
        const model = `${upstream}-${connections}/m`;
        const messages = [{ role: 'user', content: `asks-${name}` }];
        const more = { max_tokens: 50, messages };
        const body = requestBody(client, { model, stream: false, more });
        const reply = await rig.call(key, client, body);
        assert.equal(reply.status, 200, reply.text);
        assert.ok(isObject(reply.json));
        found.add(`${name} of ${/asks-(\w+)/.exec(reply.text)?.[1]}`);
      }
    }
    return found;
  }

  const own = ['anna of anna', 'bert of bert', 'carl of carl', 'dora of dora'];
  const ofTeam = [...own, 'anna of bert', 'bert of anna'];
  for (const client of clientDialects) {
    for (const upstream of upstreamDialects) {
      const what = `${client} by ${upstream}`;
      test(`X-3 shared connections let it: ${what}`, async () => {
        const found = await mixed(client, upstream, 'shared');
        assert.ok([...found].some((each) => !ofTeam.includes(each)));
      });
      test(`X-3 per-team: only within a team: ${what}`, async () => {
        const found = await mixed(client, upstream, 'per-team');
        assert.deepEqual(
          [...found].filter((each) => !ofTeam.includes(each)),
          [],
        );
      });
      for (const connections of ['per-key', 'per-call']) {
        test(`X-3 ${connections}: none: ${what}`, async () => {
          const found = await mixed(client, upstream, connections);
          assert.deepEqual([...found].toSorted(), own);
        });
      }
    }
  }
});
