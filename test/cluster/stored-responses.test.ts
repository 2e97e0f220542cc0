/** Kept responses of real gateways: on another worker, another gateway, after a restart, and in no file to be read. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, afterEach, before, describe, it, test } from 'node:test';
import OpenAI from 'openai';
import { noPostgres, startPostgres, type TestPostgres } from '../support/postgres.ts';
import { until } from '../support/postgres-store.ts';
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

  it('R-31 where the store takes none, answers are whole and say so, and what refers to them is refused', async () => {
    const at = await start({ storage: 'sqlite' });
    const client = clientOf(at, await at.makeKey());
    answers(3);
    const db = new DatabaseSync(join(at.directory, 'data', 'gateway.db'), { timeout: 5000 });
    db.exec(`CREATE TRIGGER no_room BEFORE INSERT ON kept_responses
      BEGIN SELECT RAISE(ABORT, 'no room'); END`);
    const whole = await client.responses.create({ model: 'up/m', input: asked });
    assert.equal(whole.output_text, said);
    assert.equal(Reflect.get(whole, 'store'), false);
    const events = client.responses.stream({ model: 'up/m', input: asked });
    const streamed = await events.finalResponse();
    assert.equal(streamed.output_text, said);
    assert.equal(Reflect.get(streamed, 'store'), false);
    for (const { id } of [whole, streamed]) {
      const further = { model: 'up/m', input: asked, previous_response_id: id };
      await assert.rejects(client.responses.create(further), {
        status: 400,
        code: 'previous_response_not_found',
      });
    }
    const metrics = await at.admin('GET', '/metrics');
    assert.match(metrics.text, /kept_responses_total\{[^}]*"failed"[^}]*\} 2\b/);
    // The log comes on a way of its own.
    await until(() => /response_not_kept.*no room/.test(at.log), 'the log tells of it');
    db.exec('DROP TRIGGER no_room');
    db.close();
    const kept = await client.responses.create({ model: 'up/m', input: asked });
    assert.equal((await client.responses.retrieve(kept.id)).output_text, said);
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

/** All rows of all tables as text, each behind the name of its table. */
async function everyRow(postgres: TestPostgres, url: string): Promise<readonly string[]> {
  const named = "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'";
  const tables = (await postgres.query(named, url)).map(({ name }) => String(name));
  const rows = tables.map(async (table) => {
    const found = await postgres.query(`SELECT t::text AS row FROM "${table}" t`, url);
    return found.map(({ row }) => `${table} ${String(row)}`);
  });
  return (await Promise.all(rows)).flat();
}

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
      const script = answers(7);
      const clients = [clientOf(one, key), clientOf(other, key)];
      const id = await goOn(clients, 6);
      assertWhole(script, 6);
      const { data } = await clientOf(one, key).responses.inputItems.list(id, { order: 'asc' });
      assert.equal(data.length, 11);
      const input = data.map((item) => ({ type: 'item_reference' as const, id: item.id ?? '' }));
      const again = { model: 'up/m', input, store: false };
      await clientOf(other, key).responses.create(again);
      const sent = JSON.stringify(script.requests.at(-1)?.json);
      for (let turn = 0; turn < 6; turn += 1) assert.ok(sent.includes(`${asked} ${turn}`), sent);
      const rows = await everyRow(postgres, url);
      assert.equal(rows.filter((row) => row.startsWith('kept_responses ')).length, 6);
      for (const canary of [asked, said]) {
        // Bytes are told in hex.
        const hex = Buffer.from(canary).toString('hex');
        assert.ok(!rows.some((row) => row.includes(canary) || row.includes(hex)), canary);
      }
      const stranger = await other.makeKey();
      await assert.rejects(clientOf(other, stranger).responses.retrieve(id), { status: 404 });
    });
  });
}
