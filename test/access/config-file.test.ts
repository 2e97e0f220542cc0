/** Editing the config file over the admin API of a real gateway (issue 24). */
import assert from 'node:assert/strict';
import fs, {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { RunningGateway } from '../../src/compose/options.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { startGateway } from '../../src/main.ts';
import { temporaryFolder } from '../support/folders.ts';
import { adminToken, clientKey } from '../support/keys.ts';

const secret = 'canary-inline-key';
/** In the environment of the gateway, and in no file; with a character that ends the name of a provider. */
const referredSecret = 'Q7-referred/Secret-9';
const first = `# Ours.
providers:
  up: { dialect: openai-chat, base_url: "http://127.0.0.1:9/v1", api_key: ${secret} }
models:
  fast: up/one  # the usual one
`;

interface Place {
  readonly file: string;
  readonly gateway: RunningGateway;
  ask(method: string, path: string, body?: unknown, etag?: string): Promise<Answer>;
  /** The text and the tag of the file as the API shows it. */
  read(): Promise<{ readonly text: string; readonly etag: string }>;
}

interface Answer {
  readonly status: number;
  readonly body: JsonObject;
  readonly etag: string | null;
}

async function placed(
  t: TestContext,
  options: { readonly text?: string | undefined; readonly link?: true } = {},
): Promise<Place> {
  const folder = temporaryFolder('config-file');
  const file = join(folder, 'gateway.yaml');
  const { text = first, link } = options;
  if (link === true) {
    mkdirSync(join(folder, 'real'));
    writeFileSync(join(folder, 'real', 'team.yaml'), text, { mode: 0o640 });
    symlinkSync(join('real', 'team.yaml'), file);
  } else if (!('text' in options) || options.text !== undefined) {
    writeFileSync(file, text, { mode: 0o640 });
  }
  const gateway = await startGateway({
    flags: {
      listen: '127.0.0.1:0',
      'admin-listen': '127.0.0.1:0',
      'data-dir': join(folder, 'data'),
      'log-level': 'silent',
    },
    env: {
      MODEL_GATEWAY_KEY: clientKey,
      MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
      REFERRED: referredSecret,
    },
    cwd: folder,
    load: () => () => undefined,
  });
  t.after(() => gateway.stop());
  const ask: Place['ask'] = async (method, path, body, etag) => {
    const response = await fetch(gateway.adminUrl + path, {
      method,
      headers: {
        authorization: `Bearer ${adminToken}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(etag === undefined ? {} : { 'if-match': etag }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const received = await response.text();
    assert.ok(!received.includes(secret), received);
    assert.doesNotMatch(received, /referred/, 'what a reference stands for');
    return {
      status: response.status,
      body: tryParseObject(received) ?? {},
      etag: response.headers.get('etag'),
    };
  };
  const read: Place['read'] = async () => {
    const { body } = await ask('GET', '/api/config/file');
    return { text: String(body['text']), etag: String(body['etag']) };
  };
  return { file, gateway, ask, read };
}

const path = '/api/config/file';
const lines = (value: unknown): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter((each) => isObject(each)) : [];
const messageOf = ({ body }: Answer): string =>
  isObject(body['error']) ? String(body['error']['message']) : JSON.stringify(body);

test('issue 24 S4 the file is shown without its secrets, and comes back with them', async (t) => {
  const place = await placed(t);
  const shown = await place.ask('GET', path);
  assert.equal(shown.status, 200);
  const { text, etag } = await place.read();
  assert.equal(shown.etag, etag);
  assert.equal(shown.body['editable'], true);
  assert.match(text, /api_key: "<kept: providers\.up\.api_key>"/);
  const typed = text.replace('fast: up/one', 'fast: up/two');
  const written = await place.ask('PUT', path, { text: typed }, etag);
  assert.equal(written.status, 200, messageOf(written));
  assert.deepEqual(written.body['changes'], [
    { path: 'models.fast', before: 'up/one', after: 'up/two', overridden_by: null },
  ]);
  const after = first.replace('fast: up/one', 'fast: up/two');
  assert.equal(readFileSync(place.file, 'utf8'), after, 'comments and spaces stay');
  assert.equal(readFileSync(`${place.file}.bak`, 'utf8'), first);
  for (const file of [place.file, `${place.file}.bak`]) {
    assert.equal(statSync(file).mode & 0o777, 0o640, file);
  }
  assert.equal((await place.read()).etag, written.body['etag']);
  const settings = lines((await place.ask('GET', '/api/config')).body['settings']);
  assert.equal(settings.find((each) => each['path'] === 'models.fast')?.['value'], 'up/two');
  const entries = lines((await place.ask('GET', '/api/audit?action=config.write')).body['entries']);
  assert.equal(entries.length, 1);
  assert.deepEqual(
    [entries[0]?.['actor'], entries[0]?.['subject'], entries[0]?.['after']],
    ['admin', `file:${place.file}`, { changed: ['models.fast'], changes: 1 }],
  );
});

test('issue 24 what is wrong is reported with line and column in the words of check; nothing is written', async (t) => {
  const place = await placed(t);
  const { text, etag } = await place.read();
  const typed = text.replace('fast: up/one', 'fast: upp/one').replace('dialect:', 'dialekt:');
  const { body } = await place.ask('POST', `${path}/validate`, { text: typed });
  assert.equal(body['valid'], false);
  const problems = lines(body['problems']);
  assert.deepEqual(
    problems.map(({ line, column, path: at }) => [line, column, at]),
    [
      [3, 9, 'providers.up.dialekt'],
      [5, 3, 'models.fast'],
    ],
  );
  assert.equal(
    problems[0]?.['text'],
    'gateway.yaml:3: providers.up.dialekt: unknown key (did you mean "dialect"?)',
  );
  const refused = await place.ask('PUT', path, { text: typed }, etag);
  assert.equal(refused.status, 422);
  assert.match(messageOf(refused), /Nothing was written: gateway\.yaml:3: .*unknown key/);
  const broken = await place.ask('POST', `${path}/validate`, { text: 'models: [\n' });
  assert.equal(lines(broken.body['problems'])[0]?.['line'], 2);
  const moved = text.replace('fast: up/one', 'fast: "<kept: providers.up.api_key>"');
  assert.match(
    messageOf(await place.ask('PUT', path, { text: moved }, etag)),
    /gateway\.yaml:5: models\.fast: <kept: providers\.up\.api_key> was moved/,
  );
  assert.match(
    messageOf(await place.ask('PUT', path, { text: '\n' }, etag)),
    /is empty, which is taken for an unfinished write/,
  );
  assert.equal(readFileSync(place.file, 'utf8'), first);
  assert.ok(!existsSync(`${place.file}.bak`));
});

test('issue 24 a file that changed meanwhile is not overwritten, and one of two writers wins', async (t) => {
  const place = await placed(t);
  const { text, etag } = await place.read();
  assert.equal((await place.ask('PUT', path, { text })).status, 428);
  const other = first.replace('up/one', 'up/other');
  writeFileSync(place.file, other);
  const late = await place.ask('PUT', path, { text }, etag);
  assert.equal(late.status, 412);
  assert.match(messageOf(late), /has changed since it was read\. Nothing was written/);
  assert.equal(readFileSync(place.file, 'utf8'), other);
  const now = await place.read();
  const writers = ['a', 'b', 'c'].map((name) =>
    place.ask('PUT', path, { text: now.text.replace('up/other', `up/${name}`) }, now.etag),
  );
  const statuses = (await Promise.all(writers)).map(({ status }) => status);
  assert.deepEqual(statuses.toSorted(), [200, 412, 412]);
  const folder = readdirSync(join(place.file, '..')).toSorted();
  assert.deepEqual(folder, ['data', 'gateway.yaml', 'gateway.yaml.bak'], 'nothing is left over');
});

test('issue 24 warnings name what closes the dashboard, takes keys away or needs a restart', async (t) => {
  const digest = `sha256:${'ab'.repeat(32)}`;
  const place = await placed(t, {
    text: `${first}keys:\n  ci: { digest: "${digest}", models: ["*"] }\nlimits: { streams: 100 }\n`,
  });
  const { text } = await place.read();
  const typed = `${text.replace(/keys:\n.*\n/, '')}workers: 2\nlisten: 127.0.0.1:9999\n`;
  const { body } = await place.ask('POST', `${path}/validate`, { text: typed });
  assert.deepEqual(body['problems'], []);
  assert.deepEqual(body['warnings'], ['keys: ci will be revoked at once.']);
  assert.deepEqual(body['needs_restart'], ['workers']);
  const changes = lines(body['changes']);
  // The flag decides: what the file says of it is shown as such.
  assert.deepEqual(
    changes.find((each) => each['path'] === 'listen'),
    { path: 'listen', before: null, after: '127.0.0.1:9999', overridden_by: 'flag --listen' },
  );
  const secretTyped = text.replace('"<kept: providers.up.api_key>"', 'canary-new-key');
  const retyped = await place.ask('POST', `${path}/validate`, { text: secretTyped });
  assert.deepEqual(retyped.body['changes'], [
    {
      path: 'providers.up.api_key',
      before: '[secret]',
      after: '[secret]',
      overridden_by: null,
    },
  ]);
});

test('S4 issue 24 what references stand for is not shown, whether the text holds or not', async (t) => {
  const place = await placed(t);
  const { text, etag } = await place.read();
  const file = join(place.file, '..', 'secret-file');
  writeFileSync(file, 'referred-in-a-file\n', { mode: 0o600 });
  const typed = `${text.replace('up/one', '"up/${REFERRED}"')}data_dir: "./x/\${REFERRED}"
local: { models_dir: "/x/\${file:${file}}" }
webhooks: [ { url: "http://\${file:${file}}.example/", format: slack } ]
`;
  const { body } = await place.ask('POST', `${path}/validate`, { text: typed });
  assert.deepEqual(body['problems'], []);
  const after = new Map(lines(body['changes']).map((each) => [each['path'], each['after']]));
  assert.equal(after.get('models.fast'), 'up/${REFERRED}');
  assert.equal(after.get('data_dir'), './x/${REFERRED}', 'a flag overrides it');
  assert.equal(after.get('local.models_dir'), `/x/\${file:${file}}`);
  assert.equal(after.get('webhooks[0]'), '[secret]');
  for (const [from, to, message] of [
    ['up/one', '"${REFERRED}/x"', /models\.fast: there is no provider "\$\{REFERRED\}\/x"/],
    ['fast: up/one', 'fast: { targets: [ "x${REFERRED}" ] }', /provider "x\$\{REFERRED\}"/],
    ['# Ours.', 'data_dir: "${file:${REFERRED}}"', /is not a reference|cannot be read/],
    ['# Ours.', 'limits: { body: "${REFERRED}" }', /limits\.body/],
  ] as const) {
    const wrong = text.replace(from, () => to);
    const refused = await place.ask('POST', `${path}/validate`, { text: wrong });
    assert.equal(refused.body['valid'], false);
    assert.match(String(lines(refused.body['problems'])[0]?.['text']), message);
    assert.equal((await place.ask('PUT', path, { text: wrong }, etag)).status, 422);
  }
});

test('issue 24 what the gateway refuses to run with is put back', async (t) => {
  const place = await placed(t);
  const { text, etag } = await place.read();
  // Only the running gateway knows that the key of MODEL_GATEWAY_KEY has this id.
  const digest = `sha256:${'ab'.repeat(32)}`;
  const typed = `${text}keys:\n  env: { digest: "${digest}", models: ["*"] }\n`;
  const refused = await place.ask('PUT', path, { text: typed }, etag);
  assert.equal(refused.status, 422, messageOf(refused));
  assert.match(messageOf(refused), /The previous file is back/);
  assert.equal(readFileSync(place.file, 'utf8'), first);
  const entries = lines((await place.ask('GET', '/api/audit?action=config')).body['entries']);
  const actions = entries.map(({ action }) => action);
  assert.ok(actions.includes('config.write_failed'), actions.join());
});

test('issue 24 where the previous file cannot be put back, the answer says where it is', async (t) => {
  const place = await placed(t);
  const { text, etag } = await place.read();
  const { renameSync } = fs;
  let written = 0;
  // The disk is full when it is written for the second time.
  const mocked = t.mock.method(fs, 'renameSync', (from: string, to: string) => {
    if (to === place.file && ++written === 2) {
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    }
    renameSync(from, to);
  });
  syncBuiltinESMExports();
  t.after(() => {
    mocked.mock.restore();
    syncBuiltinESMExports();
  });
  const digest = `sha256:${'ab'.repeat(32)}`;
  const typed = `${text}keys:\n  env: { digest: "${digest}", models: ["*"] }\n`;
  const refused = await place.ask('PUT', path, { text: typed }, etag);
  assert.equal(refused.status, 409, messageOf(refused));
  assert.match(messageOf(refused), /could not be put back \(ENOSPC\): it is gateway\.yaml\.bak/);
  assert.equal(readFileSync(`${place.file}.bak`, 'utf8'), first);
});

test('S4 issue 24 why a file was refused quotes no secret of it in events and diagnostics', async (t) => {
  const place = await placed(t);
  for (const wrong of [
    first.replace('up/one', `${secret}/one`),
    first.replace('up/one', '"${REFERRED}/one"'),
    `${first}models: "${secret}\n`,
  ]) {
    writeFileSync(place.file, wrong);
    await place.gateway.reload();
    const { body } = await place.ask('GET', '/api/diagnostics');
    const reload = isObject(body['last_reload']) ? body['last_reload'] : {};
    assert.equal(reload['applied'], false);
    assert.match(JSON.stringify(reload['problems']), /gateway\.yaml:\d/);
    await place.ask('GET', '/api/events');
  }
});

test('issue 24 a link stays a link; the file that it leads to is replaced', async (t) => {
  const place = await placed(t, { link: true });
  const { text, etag } = await place.read();
  const typed = text.replace('up/one', 'up/two');
  assert.equal((await place.ask('PUT', path, { text: typed }, etag)).status, 200);
  const real = join(place.file, '..', 'real', 'team.yaml');
  assert.match(readFileSync(real, 'utf8'), /up\/two.*\n$/);
  assert.deepEqual(readdirSync(join(real, '..')).toSorted(), ['team.yaml', 'team.yaml.bak']);
  assert.ok(lstatSync(place.file).isSymbolicLink());
});

test('issue 24 a file that may not be written is shown read-only with the reason', async (t) => {
  const place = await placed(t);
  chmodSync(place.file, 0o444);
  const { body } = await place.ask('GET', path);
  assert.deepEqual([body['editable'], body['reason']], [false, 'its mode allows no writing']);
  assert.match(String(body['text']), /fast: up\/one/);
  const refused = await place.ask('PUT', path, { text: 'models: {}\n' }, String(body['etag']));
  assert.equal(refused.status, 409);
  assert.match(messageOf(refused), /read-only: its mode allows no writing/);
  assert.equal(readFileSync(place.file, 'utf8'), first);
});

test('issue 24 without a file, and with one that is too large or not YAML, the reason is reported', async (t) => {
  const without = await placed(t, { text: undefined });
  const { body } = await without.ask('GET', path);
  assert.deepEqual(
    [body['path'], body['text'], body['editable'], body['reason']],
    [null, null, false, 'the gateway runs without a config file'],
  );
  const place = await placed(t);
  writeFileSync(place.file, `# ${'x'.repeat(300_000)}\n${first}`);
  assert.match(String((await place.ask('GET', path)).body['reason']), /larger than 256 KiB/);
  writeFileSync(place.file, 'providers: [\n');
  assert.match(String((await place.ask('GET', path)).body['reason']), /line 2 .* not valid YAML/);
  writeFileSync(place.file, Buffer.from([0x61, 0x3a, 0x20, 0xff]));
  assert.match(String((await place.ask('GET', path)).body['reason']), /not UTF-8/);
  const huge = await place.ask('POST', `${path}/validate`, { text: 'x'.repeat(300_000) });
  assert.equal(huge.status, 400);
});

test('issue 24 the lines of a file for Windows keep their ends', async (t) => {
  const place = await placed(t, { text: first.replaceAll('\n', '\r\n') });
  const { text, etag } = await place.read();
  // A text field of a browser has no carriage returns.
  const typed = text.replaceAll('\r\n', '\n').replace('up/one', 'up/two');
  assert.equal((await place.ask('PUT', path, { text: typed }, etag)).status, 200);
  const after = first.replace('up/one', 'up/two').replaceAll('\n', '\r\n');
  assert.equal(readFileSync(place.file, 'utf8'), after);
});
