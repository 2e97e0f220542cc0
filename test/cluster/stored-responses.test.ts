/** Kept responses of real gateways: on another worker, another gateway, after a restart, and in no file to be read. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, it, test } from 'node:test';
import OpenAI from 'openai';
import { noPostgres, startPostgres, type TestPostgres } from '../support/postgres.ts';
import { chatDocument } from '../upstream/chat.ts';
import { ScriptedUpstream, type Script } from '../upstream/scripted.ts';
import { Instance, type InstanceOptions, type MadeKey } from './instance.ts';

/** Stand in no store and no log. */
const asked = 'canary-asked-5b21';
const said = 'canary-said-c0de';

let upstream: ScriptedUpstream;
const instances: Instance[] = [];
before(async () => {
  upstream = await ScriptedUpstream.start();
});
afterEach(async () => {
  for (const instance of instances.splice(0)) {
    await instance.kill();
    for (const canary of [asked, said]) assert.ok(!instance.log.includes(canary), instance.log);
    instance.remove();
  }
});
after(() => upstream.close());

async function start(options: Omit<InstanceOptions, 'upstream'>): Promise<Instance> {
  const instance = await Instance.start({ ...options, upstream: upstream.port });
  instances.push(instance);
  return instance;
}

function answers(count: number): Script {
  const body = JSON.stringify(chatDocument({ text: said }));
  return upstream.script('m', ...Array.from({ length: count }, () => ({ body })));
}

/** A client that opens a connection for each request: another worker takes it as a rule. */
function clientOf(at: Instance, { key }: MadeKey): OpenAI {
  const headers = { connection: 'close' };
  return new OpenAI({
    apiKey: key,
    baseURL: `${at.url}/v1`,
    maxRetries: 0,
    defaultHeaders: headers,
  });
}

/** A stream whose reader goes on the moment it sees the last event. */
async function goOn(clients: readonly OpenAI[], turns: number): Promise<string> {
  let previous: string | undefined;
  for (let turn = 0; turn < turns; turn += 1) {
    const client = clients[turn % clients.length];
    assert.ok(client !== undefined);
    const more = previous === undefined ? {} : { previous_response_id: previous };
    const stream = await client.responses.create({
      model: 'up/m',
      input: `${asked} ${turn}`,
      stream: true,
      ...more,
    });
    for await (const event of stream) {
      if (event.type !== 'response.completed') continue;
      previous = event.response.id;
      break;
    }
  }
  assert.ok(previous !== undefined);
  return previous;
}

function assertWhole(script: Script, turns: number): void {
  const last = JSON.stringify(script.requests.at(-1)?.json);
  assert.equal(script.requests.length, turns);
  for (let turn = 0; turn < turns; turn += 1) assert.ok(last.includes(`${asked} ${turn}`), last);
}

describe('kept responses on SQLite', () => {
  it('R-29 are found by other workers the moment that a stream ends', async () => {
    const at = await start({ storage: 'sqlite', config: { workers: 2 } });
    const script = answers(8);
    await goOn([clientOf(at, await at.makeKey())], 8);
    assertWhole(script, 8);
  });

  it('R-33 stand in no file, and are found after a restart and under a rotated key', async () => {
    const first = await start({ storage: 'sqlite' });
    const key = await first.makeKey();
    const script = answers(3);
    const id = await goOn([clientOf(first, key)], 2);
    await first.stop();
    const data = join(first.directory, 'data');
    const files = readdirSync(data, { recursive: true, withFileTypes: true });
    const seen = files.filter((file) => file.isFile());
    assert.ok(seen.some(({ name }) => name === 'content.key'));
    for (const { name, parentPath } of seen) {
      const bytes = readFileSync(join(parentPath, name));
      for (const canary of [asked, said]) assert.ok(!bytes.includes(canary), name);
    }
    const second = await Instance.start({
      storage: 'sqlite',
      upstream: upstream.port,
      directory: first.directory,
    });
    try {
      const rotated = await second.admin('POST', `/api/keys/${key.id}/rotate`, {});
      const now = { id: key.id, key: String(rotated.json['key']) };
      const answer = await clientOf(second, now).responses.create({
        model: 'up/m',
        input: `${asked} 2`,
        previous_response_id: id,
      });
      assert.equal(answer.output_text, said);
      assertWhole(script, 3);
      await second.admin('DELETE', `/api/keys/${key.id}/content`);
      await assert.rejects(clientOf(second, now).responses.retrieve(id), { status: 404 });
    } finally {
      await second.kill();
    }
  });
});

const server = await startPostgres();
if (server === undefined) test(noPostgres, () => {});
else onPostgres(server);

function onPostgres(postgres: TestPostgres): void {
  describe('kept responses on PostgreSQL', () => {
    after(() => postgres.close());

    it('R-29 R-33 are found by another gateway without any secret in common, and cannot be read in the database', async () => {
      const url = await postgres.makeDatabase();
      const [one, other] = await Promise.all([start({ storage: url }), start({ storage: url })]);
      const key = await one.makeKey();
      const script = answers(6);
      const clients = [clientOf(one, key), clientOf(other, key)];
      const id = await goOn(clients, 6);
      assertWhole(script, 6);
      const rows = await postgres.query(
        "SELECT encode(response, 'escape') AS text FROM kept_responses",
        url,
      );
      assert.equal(rows.length, 6);
      for (const canary of [asked, said]) assert.ok(!JSON.stringify(rows).includes(canary));
      const stranger = await other.makeKey();
      await assert.rejects(clientOf(other, stranger).responses.retrieve(id), { status: 404 });
    });
  });
}
