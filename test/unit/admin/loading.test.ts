/** The admin API loads with the first request of the listener. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { playgroundPrincipal } from '../../../src/admin/explain.ts';
import { adminRig } from './admin-rig.ts';

test('issue 25.4: a load that failed is answered with 500, and the next request loads again', async (t) => {
  let loads = 0;
  const rig = await adminRig(t, {
    explainer: async () => {
      loads += 1;
      if (loads === 1) throw new Error('a file is missing for a moment');
      return {
        keys: { principalOf: () => playgroundPrincipal },
        makePlane: () => ({ handle: async () => undefined }),
      };
    },
  });
  const failed = await fetch(`${rig.url}/healthz`);
  assert.equal(failed.status, 500);
  assert.match(await failed.text(), /could not be loaded\. The log says why/);
  assert.equal((await fetch(`${rig.url}/healthz`)).status, 200);
  assert.equal(loads, 2);
});

test('issue 25.4: requests that come while the admin API loads share one load', async (t) => {
  let loads = 0;
  const rig = await adminRig(t, {
    explainer: async () => {
      loads += 1;
      return {
        keys: { principalOf: () => playgroundPrincipal },
        makePlane: () => ({ handle: async () => undefined }),
      };
    },
  });
  const left = new AbortController();
  const leaving = fetch(`${rig.url}/healthz`, { signal: left.signal });
  left.abort();
  await assert.rejects(leaving);
  const answers = await Promise.all([1, 2, 3].map(() => fetch(`${rig.url}/healthz`)));
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  );
  assert.equal(loads, 1);
});
