/** `check` says what keeps people from signing in; the library of OpenID Connect is loaded only where it is configured. */
import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';
import { it } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { freePort } from '../support/server-process.ts';
import { run } from '../unit/cli-config/context.ts';
import { scene } from '../unit/config/scene.ts';

const loaded: string[] = [];
// Before anything of the gateway is loaded.
registerHooks({
  resolve: (specifier, context, next) => {
    loaded.push(specifier);
    return next(specifier, context);
  },
});
const { checkCommand } = await import('../../src/compose/commands/config-commands.ts');
const { adminRig } = await import('../unit/admin/admin-rig.ts');

function isLoaded(): boolean {
  return loaded.includes('openid-client');
}

it('a gateway without sign-in does not load the library', async (t) => {
  const rig = await adminRig(t);
  assert.equal((await rig.ask('/api/session')).body['sign_in'], null);
  assert.equal((await rig.ask('/api/oidc/login')).status, 404);
  assert.ok(!isLoaded());
});

/** What `check` prints for this issuer. */
async function check(issuer: string): ReturnType<typeof run> {
  const { directory } = scene(`oidc:
  issuer: ${issuer}
  client_id: model-gateway
  client_secret: secret-of-the-client
  url: http://127.0.0.1:8687
  roles: { owner: [admins] }
`);
  const args = ['--config', `${directory}/gateway.yaml`, '--data-dir', `${directory}/d`];
  return run(checkCommand, args, {});
}

it('check says in one line that the provider does not answer, and what to do', async () => {
  const issuer = `http://127.0.0.1:${await freePort()}`;
  const { code, out, err } = await check(issuer);
  assert.equal(code, 0, 'the gateway starts all the same');
  assert.match(out, /The configuration is valid/);
  assert.match(
    err,
    /^warning: The identity provider http:\/\/127\.0\.0\.1:\d+ does not answer: .*ECONNREFUSED.*\. Check oidc\.issuer, and that this machine reaches it\. Until then only the admin token opens the dashboard\.\n$/,
  );
});

const { realProvider, serve } = await import('./providers.ts');

it('check says nothing of a provider that works', async (t) => {
  const issuer = await realProvider(t, 'http://127.0.0.1:8687/api/oidc/callback');
  assert.equal((await check(issuer)).err, '');
  assert.ok(isLoaded());
});

const documents: readonly (readonly [string, (issuer: string) => JsonObject | string, RegExp])[] = [
  [
    'of another issuer',
    () => documentOf('https://other.example'),
    /its issuer is https:\/\/other\.example\./,
  ],
  ['that is a page', () => '<!doctype html><title>Sign in</title>', /JSON|content-type/],
  ['that is not there', () => '', /status|404/],
  [
    'without addresses',
    (issuer) => ({ issuer, token_endpoint: `${issuer}/token` }),
    /it has no authorization_endpoint and no jwks_uri/,
  ],
];

function documentOf(issuer: string): JsonObject {
  return {
    issuer,
    authorization_endpoint: `${issuer}/auth`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
  };
}

for (const [what, document, why] of documents) {
  it(`check says what is wrong with a document ${what}`, async (t) => {
    let issuer = '';
    issuer = await serve(t, (_request, response) => {
      const told = document(issuer);
      const isJson = typeof told !== 'string';
      response.writeHead(told === '' ? 404 : 200, {
        'content-type': isJson ? 'application/json' : 'text/html',
      });
      response.end(isJson ? JSON.stringify(told) : told);
    });
    const { code, err } = await check(issuer);
    assert.equal(code, 0);
    const [line = '', ...rest] = err.split('\n');
    assert.deepEqual(rest, ['']);
    assert.ok(line.includes(`${issuer}/.well-known/openid-configuration does not describe`), line);
    assert.match(line, why);
    assert.match(line, /Set oidc\.issuer to the issuer of an OpenID Connect provider/);
  });
}
