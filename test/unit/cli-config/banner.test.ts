import assert from 'node:assert/strict';
import { test } from 'node:test';
import { banner, type BannerFacts } from '../../../src/cli/banner.ts';

const facts: BannerFacts = {
  url: 'http://127.0.0.1:8686',
  adminUrl: 'http://127.0.0.1:8687',
  providers: ['openai', 'local'],
  defaultModel: 'local/tiny',
  dataDir: '/data',
  program: 'model-gateway',
};
const terminal = { columns: 100, colour: false };

test('a new key is shown with lines to paste for curl, both SDKs and Claude Code', () => {
  const text = banner({ ...facts, key: 'gw_new', adminToken: 'adm_new' });
  assert.match(text, /^key +gw_new +\(new, shown only now\)$/m);
  assert.match(text, /^admin token +adm_new/m);
  assert.match(text, /^providers +openai, local$/m);
  assert.match(text, /^data +\/data$/m);
  assert.match(text, /curl http:\/\/127\.0\.0\.1:8686\/v1\/chat\/completions/);
  assert.match(text, /curl http:\/\/127\.0\.0\.1:8686\/v1\/messages/);
  assert.match(
    text,
    /new OpenAI\({ baseURL: 'http:\/\/127\.0\.0\.1:8686\/v1', apiKey: 'gw_new' }\)/,
  );
  assert.match(
    text,
    /new Anthropic\({ baseURL: 'http:\/\/127\.0\.0\.1:8686', apiKey: 'gw_new' }\)/,
  );
  const real = banner({ ...facts, key: 'gw_new', defaultModel: 'sonnet' });
  assert.match(
    real,
    /^Claude Code +ANTHROPIC_BASE_URL=http:\/\/127\.0\.0\.1:8686 ANTHROPIC_AUTH_TOKEN=gw_new .*claude$/m,
  );
});

test('Claude Code is not offered the demonstration model, whose context is too small for it', () => {
  const text = banner({ ...facts, key: 'gw_new' });
  assert.match(text, /^Claude Code +needs a larger model than local\/tiny: .*ANTHROPIC_API_KEY/m);
  assert.ok(!text.includes('ANTHROPIC_MODEL'));
});

test('programs find both addresses in lines of their own, people in the aligned table', () => {
  const piped = banner({ ...facts, key: 'gw_new' });
  assert.match(
    piped,
    /^listening http:\/\/127\.0\.0\.1:8686\nadmin http:\/\/127\.0\.0\.1:8687\n\n/,
  );
  const shown = banner({ ...facts, key: 'gw_new' }, terminal);
  const table = (shown.split('\n\n')[0] ?? '').trim().split('\n');
  const starts = table.map((line) => /^.+? {2,}(?=\S)/.exec(line)?.[0].length);
  assert.equal(new Set(starts).size, 1, table.join('\n'));
  assert.match(shown, /^listening +http:\/\/127\.0\.0\.1:8686$/m);
  assert.match(shown, /^admin +http:\/\/127\.0\.0\.1:8687 +\(dashboard; sign in with /m);
  for (const text of [piped, shown]) assert.equal(text.split('127.0.0.1:8687').length, 2);
});

test('a data plane that other machines can reach gets a remark', () => {
  assert.match(
    banner({ ...facts, url: 'http://0.0.0.0:9101' }),
    /Note: other machines can reach 0\.0\.0\.0:9101, and it speaks plain HTTP/,
  );
  for (const url of ['http://127.0.0.1:1', 'http://[::1]:1', 'https://0.0.0.0:1']) {
    assert.ok(!banner({ ...facts, url }).includes('Note:'), url);
  }
});

test('an old key is not there to show: the banner says where it was and how to make another', () => {
  const text = banner(facts);
  assert.match(text, /shown at the first start; create another: .*keys create/);
  assert.ok(!text.includes('curl'));
  assert.match(banner({ ...facts, keyFromEnvironment: true }), /the one in MODEL_GATEWAY_KEY/);
});

test('lines to paste for a listener on all addresses lead to loopback', () => {
  const text = banner({ ...facts, url: 'http://0.0.0.0:8686', key: 'gw_new' });
  assert.match(text, /curl http:\/\/127\.0\.0\.1:8686\/v1\/messages/);
});

test('issue 8.1 every start says where the dashboard is and what opens it', () => {
  const first = banner({ ...facts, key: 'gw_new', adminToken: 'adm_new' });
  assert.match(first, /^dashboard +at the admin address; sign in with the admin token$/m);
  const later = banner({ ...facts, adminUrl: 'http://0.0.0.0:8687' }, terminal);
  assert.match(later, /^admin +http:\/\/127\.0\.0\.1:8687 .*if lost, .*MODEL_GATEWAY_ADMIN_TOKEN/m);
  const set = banner({ ...facts, adminTokenFromEnvironment: true });
  assert.match(set, /^dashboard .*the token in MODEL_GATEWAY_ADMIN_TOKEN$/m);
});
