/** `pull hf:…` against a server that answers as the hub does: list of files, redirect to a store. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test, type TestContext } from 'node:test';
import { fileServer, sha256, type FileServer } from './file-server.ts';
import { ggufBytes } from './gguf-file.ts';
import { pullScene, type PullScene } from './pull-scene.ts';

const model = ggufBytes({ dataBytes: 300_000 });
const hash = sha256(model);
const commit = '0123456789abcdef0123456789abcdef01234567';
const token = 'hf_testtokentesttoken';

interface HubScene {
  readonly hub: FileServer;
  readonly store: FileServer;
  readonly scene: PullScene;
  readonly env: { readonly HF_ENDPOINT: string; readonly HF_TOKEN: string };
}

function sibling(rfilename: string, size = model.length): object {
  return { rfilename, size, blobId: 'x', lfs: { sha256: hash, size, pointerSize: 134 } };
}

async function hubScene(t: TestContext, siblings: readonly object[]): Promise<HubScene> {
  const hub = await fileServer(t);
  const store = await fileServer(t);
  const scene = pullScene(store);
  hub.serve('/api/models/acme/small-GGUF', { json: { sha: commit, siblings } });
  hub.serve(`/acme/small-GGUF/resolve/${commit}/small-Q8_0.gguf`, {
    redirect: `${store.url}/xet/abc?signature=geheim`,
    headers: { 'x-linked-etag': `"${hash}"`, 'x-linked-size': String(model.length) },
  });
  store.serve('/xet/abc', { content: model });
  return { hub, store, scene, env: { HF_ENDPOINT: hub.url, HF_TOKEN: token } };
}

const usual = [
  sibling('README.md'),
  sibling('small-Q4_K_M.gguf', 200_000_000),
  sibling('small-Q8_0.gguf'),
  sibling('mmproj-Q8_0.gguf'),
  sibling('big/small-BF16-00001-of-00002.gguf'),
];

describe('§4 pull hf:', () => {
  test('the quantisation finds the file; the hash is the hub’s; the token goes to no other host', async (t) => {
    const { hub, store, scene, env } = await hubScene(t, usual);
    const { model: got, record } = await scene.pull('hf:acme/small-GGUF:q8_0', { env });
    assert.equal(got.name, 'small-q8_0');
    assert.deepEqual(readFileSync(got.path), model);
    assert.deepEqual(record, {
      source: 'hf:acme/small-GGUF:Q8_0',
      sha256: hash,
      bytes: model.length,
      verified: 'server',
    });
    assert.deepEqual(
      hub.asked.map(({ authorization }) => authorization),
      [`Bearer ${token}`, `Bearer ${token}`],
    );
    assert.deepEqual(
      store.asked.map(({ authorization }) => authorization),
      [undefined],
    );
  });

  test('a cut at the store is taken up through the hub', async (t) => {
    const { hub, store, scene, env } = await hubScene(t, usual);
    store.serve('/xet/abc', { content: model, cuts: [150_000] });
    const { model: got } = await scene.pull('hf:acme/small-GGUF:Q8_0', { env });
    assert.deepEqual(readFileSync(got.path), model);
    assert.equal(store.asked[1]?.range, 'bytes=150000-');
    assert.equal(hub.asked.length, 3);
  });

  test('another file in the store than the hub promised is removed', async (t) => {
    const { store, scene, env } = await hubScene(t, usual);
    const forged = Buffer.from(model);
    forged[forged.length - 1] = 1;
    store.serve('/xet/abc', { content: forged });
    const said = await scene.refused('hf:acme/small-GGUF:Q8_0', { env });
    assert.match(said, new RegExp(`${hash} was expected. It was removed`));
    assert.deepEqual(scene.files(), []);
    store.serve('/xet/abc', { content: Buffer.concat([model, model]) });
    assert.match(await scene.refused('hf:acme/small-GGUF:Q8_0', { env }), /were announced/);
  });

  test('an address of the hub is checked against the hash in its redirect', async (t) => {
    const { hub, store, scene, env } = await hubScene(t, usual);
    const url = `${hub.url}/acme/small-GGUF/blob/${commit}/small-Q8_0.gguf`;
    const { record } = await scene.pull(url, { env });
    assert.equal(record.verified, 'server');
    const forged = Buffer.from(model);
    forged[forged.length - 1] = 1;
    store.serve('/xet/abc', { content: forged });
    assert.match(await scene.refused(url, { env, name: 'second' }), /was expected/);
  });

  test('--sha256 that the hub contradicts ends before the download', async (t) => {
    const { store, scene, env } = await hubScene(t, usual);
    const said = await scene.refused('hf:acme/small-GGUF:Q8_0', { env, sha256: 'a'.repeat(64) });
    assert.match(said, /Nothing was fetched/);
    assert.equal(store.asked.length, 0);
  });

  test('what is not there is reported with what is', async (t) => {
    const { scene, env } = await hubScene(t, usual);
    assert.match(
      await scene.refused('hf:acme/small-GGUF:Q2_K', { env }),
      /no file of the quantisation Q2_K. There are:\n {2}hf:acme\/small-GGUF:Q4_K_M {2}200 MB\n/,
    );
    assert.match(
      await scene.refused('hf:acme/small-GGUF/nix.gguf', { env }),
      /has no file nix.gguf. There are:/,
    );
    assert.match(await scene.refused('hf:acme/small-GGUF:BF16', { env }), /split model/);
    assert.match(
      await scene.refused('hf:acme/nothing:Q8_0', { env }),
      /answered 404.*Check the names of user, repository and file/,
    );
  });

  test('without a quantisation: the customary one, the only one, or a question', async (t) => {
    const { hub, scene, env } = await hubScene(t, usual);
    const at = `/acme/small-GGUF/resolve/${commit}/small-Q4_K_M.gguf`;
    await scene.refused('hf:acme/small-GGUF', { env });
    assert.equal(hub.asked.at(-1)?.path, at);
    const single = await hubScene(t, [sibling('small-Q8_0.gguf')]);
    await single.scene.pull('hf:acme/small-GGUF', { env: single.env });
    const several = await hubScene(t, [sibling('a-Q5_0.gguf'), sibling('b-Q6_K.gguf')]);
    assert.match(
      await several.scene.refused('hf:acme/small-GGUF', { env: several.env }),
      /Say which file/,
    );
    const none = await hubScene(t, [sibling('model.safetensors')]);
    assert.match(
      await none.scene.refused('hf:acme/small-GGUF', { env: none.env }),
      /no GGUF file.*-GGUF/,
    );
  });

  test('401 says what to do with and without a token; the token is in no message', async (t) => {
    const { hub, scene, env } = await hubScene(t, usual);
    const closed = { statuses: [{ status: 401 }, { status: 401 }, { status: 429 }] };
    hub.serve('/api/models/acme/closed', { ...closed });
    const { HF_ENDPOINT } = env;
    const without = await scene.refused('hf:acme/closed:Q8_0', { env: { HF_ENDPOINT } });
    assert.match(without, /does not exist, is private, or has terms.*set HF_TOKEN/);
    const within = await scene.refused('hf:acme/closed:Q8_0', { env });
    assert.match(within, /HF_TOKEN does not open this repository/);
    assert.ok(!`${without}${within}${scene.notes.join('')}`.includes(token));
    const busy = await scene.refused('hf:acme/closed:Q8_0', { env: { HF_ENDPOINT } });
    assert.match(busy, /too many requests.*HF_TOKEN raises the limit/);
  });

  test('mirrors: MODEL_ENDPOINT before HF_ENDPOINT; what is no address is refused', async (t) => {
    const { hub, scene } = await hubScene(t, usual);
    const env = { MODEL_ENDPOINT: hub.url, HF_ENDPOINT: 'https://models.invalid' };
    await scene.pull('hf:acme/small-GGUF:Q8_0', { env });
    for (const HF_ENDPOINT of ['models', 'ftp://x', 'https://a:b@models.test']) {
      assert.match(await scene.refused('hf:a/b:Q8_0', { env: { HF_ENDPOINT } }), /HF_ENDPOINT/);
    }
  });

  test('a mirror in a folder of its server', async (t) => {
    const { hub, store, scene } = await hubScene(t, usual);
    hub.serve('/mirror/api/models/acme/small-GGUF', { json: { sha: commit, siblings: usual } });
    const path = `/mirror/acme/small-GGUF/resolve/${commit}/small-Q8_0.gguf`;
    hub.serve(path, { redirect: `${store.url}/xet/abc` });
    await scene.pull('hf:acme/small-GGUF:Q8_0', { env: { HF_ENDPOINT: `${hub.url}/mirror` } });
    assert.equal(hub.asked.at(-1)?.path, path);
  });

  test('redirects in circles and to other schemes end', async (t) => {
    const { hub, scene } = await hubScene(t, usual);
    hub.serve('/circle.gguf', { redirect: '/circle.gguf' });
    hub.serve('/file.gguf', { redirect: 'file:///etc/passwd' });
    assert.match(await scene.refused(`${hub.url}/circle.gguf`), /redirects more than 10 times/);
    assert.match(await scene.refused(`${hub.url}/file.gguf`), /redirects to file:\/\//);
  });
});
