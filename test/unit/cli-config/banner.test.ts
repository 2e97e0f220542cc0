import assert from 'node:assert/strict';
import { test } from 'node:test';
import { banner, type BannerFacts } from '../../../src/cli/banner.ts';

const facts: BannerFacts = {
  url: 'http://127.0.0.1:8686',
  adminUrl: 'http://127.0.0.1:8687',
  providers: ['openai', 'local'],
  defaultModel: 'local/tiny',
  dataDir: '/data',
};

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
  assert.match(
    text,
    /ANTHROPIC_BASE_URL=http:\/\/127\.0\.0\.1:8686 ANTHROPIC_AUTH_TOKEN=gw_new .*claude$/m,
  );
});

test('the listening lines are the server’s: the banner has none that looks like one', () => {
  assert.ok(!/^(listening|admin) http/m.test(banner({ ...facts, key: 'gw_new' })));
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
  assert.match(first, /^dashboard +http:\/\/127\.0\.0\.1:8687 .*the admin token\)$/m);
  const later = banner({ ...facts, adminUrl: 'http://0.0.0.0:8687' });
  assert.match(
    later,
    /^dashboard +http:\/\/127\.0\.0\.1:8687 .*if lost, .*MODEL_GATEWAY_ADMIN_TOKEN/m,
  );
  const set = banner({ ...facts, adminTokenFromEnvironment: true });
  assert.match(set, /^dashboard .*the token in MODEL_GATEWAY_ADMIN_TOKEN\)$/m);
});
