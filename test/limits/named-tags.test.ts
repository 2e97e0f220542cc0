/** who may use up a tag's limits by naming it in a request, and the errors that others get. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { clientDialects, upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import { type AnyDialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { send, type Reply } from '../support/http.ts';
import { replying } from '../upstream/reply.ts';
import { errorOf, startLimitedRig, type LimitedKey, type LimitedRig } from './limited-rig.ts';

const declared = 'sha256:' + 'ab'.repeat(32);

describe('X-5 tags that a client names', { timeout: 300_000 }, () => {
  let rig: LimitedRig;
  before(async () => {
    rig = await startLimitedRig({
      keys: { ci: { digest: declared, models: ['*'] } },
      tags: { declared: { rpm: 1, keys: ['ci'], teams: ['search'] } },
    });
  });
  after(() => rig.stop());

  const padding = ' and so on'.repeat(4000);

  interface Naming {
    readonly dialect?: AnyDialect;
    readonly upstream?: UpstreamDialect;
    readonly long?: boolean;
  }

  function call(key: LimitedKey, tag: string, naming: Naming = {}): Promise<Reply> {
    const { dialect = 'chat', upstream = 'chat', long = false } = naming;
    const { model } = rig.play(upstream, replying(upstream, { text: 'Yes.' }));
    const messages = [{ role: 'user', content: `What is it?${long ? padding : ''}` }];
    const body = requestBody(dialect, {
      model,
      stream: false,
      more: { max_tokens: 100, messages },
    });
    return rig.call(key, dialect, body, { 'x-gateway-tags': tag });
  }

  for (const dialect of clientDialects) {
    for (const upstream of upstreamDialects) {
      for (const long of [false, true]) {
        const what = `${dialect} by ${upstream}, ${long ? 'long' : 'short'}`;
        test(`X-5 a foreign key neither uses up a tag's limits nor is told of them: ${what}`, async () => {
          const tag = `project-${dialect}-${upstream}-${String(long)}`;
          await rig.admin('PUT', `/api/tags/${tag}`, { rpm: 2, budget: '0.5', per: 'day' });
          const own = await rig.key({ tags: [tag] });
          const stranger = await rig.key();
          const naming = { dialect, upstream, long };
          const answers = [];
          for (let i = 0; i < 4; i++) answers.push(await call(stranger, tag, naming));
          const plain = await call(stranger, 'no-such-tag', naming);
          for (const answer of [...answers, plain]) {
            assert.equal(answer.status, 200, answer.text);
            const told = Object.keys(answer.headers).filter((name) => name.includes('ratelimit'));
            assert.deepEqual(told, []);
          }
          assert.deepEqual(
            Object.keys(answers[3]?.headers ?? {}).toSorted(),
            Object.keys(plain.headers).toSorted(),
          );
          // Whose it is still has all of it, and it is a limit for him.
          assert.equal((await call(own, tag, naming)).status, 200);
          assert.equal((await call(own, tag, naming)).status, 200);
          assert.equal((await call(own, tag, naming)).status, 429);
          assert.equal((await call(stranger, tag, naming)).status, 200);
        });
      }
    }
  }

  test('X-5 a spent budget of a tag refuses no foreign key, and shows it nothing', async () => {
    await rig.admin('PUT', '/api/tags/spent', { budget: 0, per: 'ever' });
    const answer = await call(await rig.key(), 'spent');
    assert.equal(answer.status, 200, answer.text);
    const own = await call(await rig.key({ tags: ['spent'] }), 'other');
    assert.match(String(errorOf(own)['message']), /budget of tag spent/);
  });

  test('X-5 count_tokens takes nothing of a foreign tag either', async () => {
    await rig.admin('PUT', '/api/tags/counted', { rpm: 1 });
    const key = await rig.key();
    const { model } = rig.play('messages', replying('messages', { text: 'Yes.' }));
    const body = requestBody('messages', { model, stream: false });
    for (let i = 0; i < 3; i++) {
      const { status } = await send(`${rig.gateway.url}/v1/messages/count_tokens`, body, {
        headers: { ...key.headers, 'x-gateway-tags': 'counted' },
      });
      assert.notEqual(status, 429);
    }
  });

  test('X-5 keys and teams on the list of a tag count for it', async () => {
    const [ofList, other] = [await rig.key(), await rig.key()];
    const ofTeam = await rig.key({ team: 'blue' });
    const set = (lists: object) =>
      rig.admin('PUT', '/api/tags/shared', { rpm: 1_000_000, concurrent: 1_000, ...lists });
    const counts = async (key: LimitedKey): Promise<boolean> =>
      (await call(key, 'shared')).headers['x-ratelimit-limit-requests'] === '1000000';
    await set({});
    assert.deepEqual([await counts(ofList), await counts(ofTeam)], [false, false]);
    const shown = await set({ keys: [ofList.id], teams: ['blue'] });
    assert.deepEqual([shown['keys'], shown['teams']], [[ofList.id], ['blue']]);
    assert.deepEqual(
      [await counts(ofList), await counts(ofTeam), await counts(other)],
      [true, true, false],
    );
    await set({ teams: ['*'] });
    assert.deepEqual(
      [await counts(ofList), await counts(ofTeam), await counts(other)],
      [false, true, false],
    );
    await set({ keys: ['*'] });
    assert.deepEqual([await counts(ofList), await counts(other)], [true, true]);
  });

  test('X-5 a tag of the file says who may name it', async () => {
    const search = await rig.key({ team: 'search' });
    assert.equal((await call(search, 'declared')).status, 200);
    assert.equal((await call(search, 'declared')).status, 429);
    assert.equal((await call(await rig.key(), 'declared')).status, 200);
    const shown = await rig.admin('GET', '/api/tags/declared');
    assert.deepEqual([shown['keys'], shown['teams']], [['ci'], ['search']]);
  });
});
