/** `pull` against a real web server: ranges, cuts, wrong hashes, redirects, refusals. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { freePort } from '../../support/server-process.ts';
import { fileServer, sha256 } from './file-server.ts';
import { ggufBytes } from './gguf-file.ts';
import { pullScene } from './pull-scene.ts';

const model = ggufBytes({ dataBytes: 600_000 });
const other = ggufBytes({ dataBytes: 700_000 });
const hash = sha256(model);

describe('§4 pull of an address', () => {
  test('brings the file, private, with its hash and what its header says', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    server.serve('/files/Qwen3-0.6B-Q4_K_M.gguf', { content: model });
    const pulled = await scene.pull(`${server.url}/files/Qwen3-0.6B-Q4_K_M.gguf?download=true`);
    assert.equal(pulled.model.name, 'qwen3-0.6b-q4_k_m');
    assert.equal(pulled.model.contextLength, 40_960);
    assert.deepEqual(pulled.model.settings, {});
    assert.deepEqual(pulled.record, {
      source: `${server.url}/files/Qwen3-0.6B-Q4_K_M.gguf`,
      sha256: hash,
      bytes: model.length,
      verified: 'none',
    });
    assert.deepEqual(readFileSync(pulled.model.path), model);
    assert.deepEqual(scene.files(), ['qwen3-0.6b-q4_k_m.gguf', 'qwen3-0.6b-q4_k_m.json']);
    assert.equal(statSync(scene.folder).mode & 0o777, 0o700);
    for (const file of scene.files()) {
      assert.equal(statSync(join(scene.folder, file)).mode & 0o777, 0o600, file);
    }
  });

  test('a cut connection is taken up where it broke off', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    server.serve('/m.gguf', { content: model, cuts: [200_000, 100_000] });
    const { model: got } = await scene.pull(`${server.url}/m.gguf`, { sha256: hash });
    assert.deepEqual(readFileSync(got.path), model);
    const ranges = server.asked.map(({ range }) => range);
    assert.deepEqual(ranges, [undefined, 'bytes=200000-', 'bytes=300000-']);
    assert.equal(server.asked[1]?.ifRange, `"${hash.slice(0, 16)}"`);
    assert.match(scene.notes[0] ?? '', /was cut after .* Going on in 1 s/);
  });

  test('a later pull continues with what an earlier one left', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    const url = `${server.url}/m.gguf`;
    server.serve('/m.gguf', { content: model, cuts: [300_000, 0, 0, 0, 0, 0, 0, 0, 0] });
    assert.match(await scene.refused(url), /The same command goes on from there/);
    assert.deepEqual(scene.files(), ['m.gguf.part', 'm.gguf.part.json']);
    assert.equal(statSync(join(scene.folder, 'm.gguf.part')).size, 300_000);
    server.serve('/m.gguf', { content: model });
    server.asked.length = 0;
    const { model: got } = await scene.pull(url);
    assert.deepEqual(readFileSync(got.path), model);
    assert.deepEqual(
      server.asked.map(({ range }) => range),
      ['bytes=300000-'],
    );
    assert.ok(scene.steps.has('reading'));
  });

  test('a file that changed on the server in between is downloaded again', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    for (const [etagOld, etagNew] of [
      ['"a"', '"b"'],
      ['W/"a"', 'W/"b"'],
    ] as const) {
      const name = etagOld.startsWith('W') ? 'weak' : 'strong';
      const path = `/${name}.gguf`;
      const cuts = [250_000, ...Array<number>(9).fill(0)];
      server.serve(path, { content: model, etag: etagOld, cuts });
      await scene.refused(`${server.url}${path}`);
      // Of the same size: nothing but the tag tells.
      const edited = Buffer.from(model);
      edited[100_000] = 8;
      server.serve(path, { content: edited, etag: etagNew });
      const { model: got } = await scene.pull(`${server.url}${path}`);
      assert.deepEqual(readFileSync(got.path), edited);
      assert.match(scene.notes.join(' '), /another now.* The download starts again/);
    }
  });

  test('a server without ranges sends all again', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    server.serve('/m.gguf', { content: model, ranges: false, cuts: [200_000] });
    const { model: got } = await scene.pull(`${server.url}/m.gguf`);
    assert.deepEqual(readFileSync(got.path), model);
    assert.match(scene.notes.join(' '), /cannot go on in the middle/);
  });

  test('without any validator the bytes of an earlier run count only where a hash is known', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    for (const known of [true, false]) {
      const path = `/known-${known}.gguf`;
      const more = known ? { sha256: hash } : {};
      mkdirSync(scene.folder, { recursive: true });
      const part = join(scene.folder, `known-${known}.gguf.part`);
      writeFileSync(part, model.subarray(0, 200_000));
      const state = { identity: server.url + path, bytes: model.length };
      writeFileSync(`${part}.json`, JSON.stringify(state));
      server.serve(path, { content: model, etag: '' });
      server.asked.length = 0;
      const { model: got } = await scene.pull(server.url + path, more);
      assert.deepEqual(readFileSync(got.path), model);
      assert.equal(server.asked.length, known ? 1 : 2);
    }
  });

  test('a length that nobody told, and a file that was whole already', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    server.serve('/m.gguf', { content: model, chunked: true });
    await scene.pull(`${server.url}/m.gguf`);
    mkdirSync(scene.folder, { recursive: true });
    writeFileSync(join(scene.folder, 'w.gguf.part'), model);
    const state = { identity: `${server.url}/w.gguf`, bytes: model.length };
    writeFileSync(join(scene.folder, 'w.gguf.part.json'), JSON.stringify(state));
    server.serve('/w.gguf', { content: model });
    const { model: got } = await scene.pull(`${server.url}/w.gguf`);
    assert.deepEqual(readFileSync(got.path), model);
  });
});

describe('§4 pull checks what it brings', () => {
  test('a wrong hash: the file is gone and the error names both', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    server.serve('/m.gguf', { content: model });
    const wanted = sha256(other);
    const said = await scene.refused(`${server.url}/m.gguf`, { sha256: wanted });
    assert.ok(said.includes(hash) && said.includes(wanted) && /removed/.test(said), said);
    assert.deepEqual(scene.files(), []);
  });

  test('no GGUF, a web page, a damaged header: refused and gone', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    server.serve('/page.gguf', { content: Buffer.from('<!DOCTYPE html><p>Sign in</p>') });
    server.serve('/zip.gguf', { content: Buffer.from('PK\u0003\u0004 and so on') });
    server.serve('/cut.gguf', { content: model.subarray(0, 300) });
    assert.match(await scene.refused(`${server.url}/page.gguf`), /a web page/);
    assert.match(await scene.refused(`${server.url}/zip.gguf`), /no GGUF file/);
    assert.match(await scene.refused(`${server.url}/cut.gguf`), /cut off/);
    assert.deepEqual(
      scene.files().filter((name) => name.endsWith('.gguf')),
      [],
    );
  });

  test('too little space is found before the first byte', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    server.serve('/m.gguf', { content: model });
    const said = await scene.refused(`${server.url}/m.gguf`, { free: 1000 });
    assert.match(said, /not enough space in .*models: 67.7 MB are needed, 1.00 kB are free/);
    assert.equal(statSync(join(scene.folder, 'm.gguf.part')).size, 0);
  });

  test('two pulls of one name at once: the second is refused', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    server.serve('/m.gguf', { content: model });
    const answers = await Promise.allSettled([
      scene.pull(`${server.url}/m.gguf`),
      scene.pull(`${server.url}/m.gguf`),
    ]);
    const refusals = answers.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
    assert.equal(refusals.length, 1);
    assert.match(String(refusals[0]), /being fetched already/);
    assert.deepEqual(scene.files(), ['m.gguf', 'm.json']);
  });

  test('what is there is not fetched again, and nothing else takes its name', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    server.serve('/m.gguf', { content: model });
    server.serve('/b/m.gguf', { content: other });
    await scene.pull(`${server.url}/m.gguf`);
    assert.equal((await scene.pull(`${server.url}/m.gguf`)).already, true);
    assert.equal(server.asked.length, 1);
    assert.match(
      await scene.refused(`${server.url}/b/m.gguf`),
      /local\/m is there already.*models remove m/,
    );
    assert.match(await scene.refused(`${server.url}/b/m.gguf`, { name: 'M' }), /capitals only/);
  });

  test('names stay in the folder', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    for (const path of ['/m.gguf', '/..%2F..%2Fm.gguf', '/%2e%2e.gguf']) {
      server.serve(path, { content: model });
    }
    for (const name of ['../m', 'a/b', '..', '.m', 'a\\b', 'm.', 'con', 'm\n', 'x'.repeat(101)]) {
      assert.match(
        await scene.refused(`${server.url}/m.gguf`, { name }),
        /--name: a name is/,
        name,
      );
    }
    assert.match(await scene.refused(`${server.url}/m.gguf`, { name: 'Tiny' }), /model that ships/);
    const { model: got } = await scene.pull(`${server.url}/..%2F..%2Fm.gguf`);
    assert.equal(got.path, join(scene.folder, `${got.name}.gguf`));
    assert.doesNotMatch(got.name, /[/\\]/);
  });

  test('parts of split models are refused with what to do', async () => {
    const scene = pullScene();
    const said = await scene.refused('https://models.test/big-00001-of-00003.gguf', {
      sha256: hash,
    });
    assert.match(said, /split model.*llama-gguf-split --merge/);
  });
});

describe('§4 what pull says when it gets no file', () => {
  const cases: readonly (readonly [number, RegExp])[] = [
    [401, /answered 401: the server wants a login/],
    [403, /answered 403/],
    [404, /answered 404: there is no such file/],
    [418, /answered 418, which is not a file/],
  ];
  for (const [status, text] of cases) {
    test(String(status), async (t) => {
      const server = await fileServer(t);
      const scene = pullScene(server);
      server.serve('/m.gguf', { content: model, statuses: [{ status }] });
      assert.match(await scene.refused(`${server.url}/m.gguf`), text);
      assert.deepEqual(scene.pauses, []);
    });
  }

  test('429 and 503 are asked again, as long as the server says', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    const statuses = [{ status: 429, headers: { 'retry-after': '7' } }, { status: 503 }];
    server.serve('/m.gguf', { content: model, statuses });
    await scene.pull(`${server.url}/m.gguf`);
    assert.deepEqual(scene.pauses, [7000, 2000]);
  });

  test('an end to it, and no waiting for hours', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    server.serve('/m.gguf', { statuses: Array.from({ length: 9 }, () => ({ status: 502 })) });
    assert.match(
      await scene.refused(`${server.url}/m.gguf`),
      /answered 502: the server has a failure/,
    );
    assert.equal(scene.pauses.length, 5);
    server.serve('/n.gguf', { statuses: [{ status: 429, headers: { 'retry-after': '9999' } }] });
    assert.match(await scene.refused(`${server.url}/n.gguf`), /Try again in 9999 s/);
  });

  test('no way out: the address, what happened, and what to do', async () => {
    const scene = pullScene();
    const said = await scene.refused('https://models.invalid/m.gguf');
    assert.match(
      said,
      /^Tried https:\/\/models\.invalid\/m\.gguf directly \(no proxy is set\): .*models\.invalid.* \((ENOTFOUND|EAI_AGAIN)\)/,
    );
    assert.match(said, /HTTPS_PROXY/);
    assert.match(said, /HF_ENDPOINT/);
    assert.match(said, /copy it here and run: model-gateway pull PATH/);
    const port = await freePort();
    assert.match(
      await scene.refused(`http://127.0.0.1:${port}/m.gguf`),
      new RegExp(`: 127.0.0.1:${port} refuses the connection \\(ECONNREFUSED\\)`),
    );
    const env = { https_proxy: `http://127.0.0.1:${port}` };
    assert.match(
      await scene.refused('https://models.invalid/m.gguf', { env }),
      new RegExp(`: the proxy 127.0.0.1:${port} refuses the connection \\(ECONNREFUSED\\)`),
    );
  });

  for (const host of [
    '169.254.169.254',
    '2852039166',
    '[fe80::1]',
    '[::ffff:169.254.169.254]',
    'metadata.google.internal',
  ]) {
    test(`X-8 nothing is fetched from ${host}, directly or behind a redirect`, async (t) => {
      const server = await fileServer(t);
      const scene = pullScene(server);
      const path = '/latest/m.gguf';
      assert.match(
        await scene.refused(`https://${host}${path}`),
        /is not fetched: .* is a link-local or cloud-metadata address/,
      );
      for (const to of [`http://${host}${path}`, `https://${host}${path}`]) {
        server.serve('/m.gguf', { redirect: to });
        assert.match(await scene.refused(`${server.url}/m.gguf`), /is not fetched: /);
      }
      const hub = { HF_ENDPOINT: `https://${host}/` };
      assert.match(await scene.refused('hf:a/b:Q8_0', { env: hub }), /is not fetched: /);
      assert.deepEqual(scene.pauses, [], 'it is not tried again');
    });
  }

  test('X-8 a file that nothing states a hash of is told of', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    server.serve('/m.gguf', { content: model });
    await scene.pull(`${server.url}/m.gguf`);
    assert.match(scene.notes.join('\n'), /states no hash of this file.*--sha256/);
    const known = pullScene(server);
    await known.pull(`${server.url}/m.gguf`, { sha256: hash });
    assert.deepEqual(known.notes, []);
  });

  test('N4 a proxy of the environment is used, and its password is not shown', async (t) => {
    const server = await fileServer(t);
    const scene = pullScene(server);
    const seen: string[] = [];
    const proxy = createServer().listen(0, '127.0.0.1');
    proxy.on('connect', (request, socket) => {
      seen.push(`${request.url} ${String(request.headers['proxy-authorization'])}`);
      socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n');
    });
    proxy.on('request', (request, response) => {
      seen.push(`${request.url}`);
      response.writeHead(502).end();
    });
    await once(proxy, 'listening');
    t.after(() => proxy.close());
    const { port } = proxy.address() as AddressInfo;
    const env = { https_proxy: `http://user:geheim@127.0.0.1:${port}` };
    const said = await scene.refused('https://models.test/m.gguf', { env });
    assert.match(said, new RegExp(`by the proxy 127.0.0.1:${port}`));
    assert.doesNotMatch(said, /geheim/);
    assert.match(seen[0] ?? '', /^models\.test:443 Basic /);
    server.serve('/m.gguf', { content: model });
    await scene.pull(`${server.url}/m.gguf`, { env: { ...env, http_proxy: env.https_proxy } });
    assert.equal(seen.length, 1, 'this machine itself is never asked through a proxy');
  });

  test('sources that are none', async () => {
    const scene = pullScene();
    const cases: readonly (readonly [string, RegExp])[] = [
      ['gemma', /^gemma is neither a file nor a source .* model-gateway pull --list names some/],
      ['hf:Qwen', /expected hf:USER\/REPO:QUANT/],
      ['hf:a/b/../c.gguf', /expected hf:/],
      ['hf:a/b/c.bin', /expected hf:/],
      ['ftp://host/m.gguf', /none of hf:/],
      ['http://models.test/m.gguf', /--sha256/],
      ['https://user:pass@models.test/m.gguf', /user or password/],
      ['missing.gguf', /missing\.gguf is not there/],
      ['Qwen/Qwen3-0.6B-GGUF:Q8_0', /hf:Qwen\/Qwen3-0\.6B-GGUF:Q8_0/],
      ['.', /is not a file/],
    ];
    for (const [source, text] of cases) assert.match(await scene.refused(source), text, source);
    assert.match(await scene.refused('hf:a/b:Q8_0', { sha256: 'abc' }), /64 hexadecimal/);
  });
});

test('S25 what lies where a download is written is never followed', async () => {
  const scene = pullScene();
  const path = join(scene.folder, '..', '..', 'model.gguf');
  const foreign = join(scene.folder, '..', '..', 'foreign');
  writeFileSync(path, model);
  writeFileSync(foreign, 'mine');
  mkdirSync(scene.folder, { recursive: true });
  for (const ending of ['.gguf.part', '.gguf.part.json.new', '.json.new']) {
    symlinkSync(foreign, join(scene.folder, `m${ending}`));
  }
  const pulled = await scene.pull(path, { name: 'm' });
  assert.equal(readFileSync(foreign, 'utf8'), 'mine');
  assert.ok(lstatSync(pulled.model.path).isFile());
  assert.deepEqual(readFileSync(pulled.model.path), model);
});

test('§4 pull of a path copies the file', async () => {
  const scene = pullScene();
  const path = join(scene.folder, '..', '..', 'My Model (v2).gguf');
  writeFileSync(path, model);
  const pulled = await scene.pull(path);
  assert.equal(pulled.model.name, 'my-model-v2');
  assert.deepEqual(readFileSync(pulled.model.path), model);
  assert.equal(pulled.record.sha256, hash);
  assert.match(await scene.refused(path, { name: 'two', free: 10 }), /not enough space/);
  assert.match(await scene.refused(path, { name: 'three', sha256: sha256(other) }), /removed/);
  assert.deepEqual(readFileSync(path), model, 'the original stays');
});
