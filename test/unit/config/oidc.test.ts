/** `oidc:` of the file (issue 23). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { needRestart } from '../../../src/config/settings.ts';
import { scene } from './scene.ts';

const canary = 'canary-of-the-client';
const least = `oidc:
  issuer: https://login.example
  client_id: model-gateway
  client_secret: \${SECRET}
  url: https://gateway.example
  roles: { owner: [admins] }
`;
const env = { SECRET: canary };

test('the least that sign-in needs, with its defaults; the secret is shown nowhere', async () => {
  const { oidc, origins } = await scene(least).load({ env });
  assert.ok(oidc !== undefined);
  assert.equal(oidc.clientSecret.reveal(), canary);
  const { clientSecret: _, ...rest } = oidc;
  assert.deepEqual(rest, {
    issuer: 'https://login.example',
    clientId: 'model-gateway',
    url: 'https://gateway.example',
    label: 'login.example',
    scopes: 'openid profile email',
    claims: { person: 'sub', name: 'name', groups: 'groups' },
    roles: { owner: ['admins'], operator: [], viewer: [] },
    teams: [],
  });
  const shown = origins.filter(({ path }) => path.startsWith('oidc'));
  assert.ok(!inspect([oidc, shown], { depth: 9 }).includes(canary));
  assert.deepEqual(
    shown.map(({ path, value, origin }) => `${path} ${value} ${origin}`),
    [
      'oidc.issuer https://login.example gateway.yaml:2',
      'oidc.client_id model-gateway gateway.yaml:3',
      'oidc.client_secret [secret] gateway.yaml:4',
      'oidc.url https://gateway.example gateway.yaml:5',
      'oidc.roles.owner admins gateway.yaml:6',
    ],
  );
  assert.equal((await scene().load()).oidc, undefined);
});

test('a team says who its people are, and what their keys may have', async () => {
  const { oidc } = await scene(`${least}  teams:
    red: { members: [red], leads: [red-leads], models: [local/*], keys: 2, expires: 30d }
    blue: { members: [blue] }
`).load({ env });
  assert.deepEqual(oidc?.teams, [
    {
      name: 'red',
      members: ['red'],
      leads: ['red-leads'],
      models: ['local/*'],
      keys: 2,
      expiresMs: 30 * 86_400_000,
    },
    { name: 'blue', members: ['blue'], leads: [], models: ['*'], keys: 10, expiresMs: Infinity },
  ]);
});

test('N3 what would be unsafe or of no use is refused, by its line', async () => {
  const changed = (from: string, to: string): Promise<readonly string[]> =>
    scene(least.replace(from, to)).errors({ env });
  for (const [from, to, expected] of [
    ['https://login', 'http://login', /:2: oidc\.issuer: must be an https:\/\/ address/],
    ['https://login.example', 'login.example', /:2: oidc\.issuer: is not an https:\/\/ address/],
    ['https://login.example', 'https://169.254.169.254', /:2: oidc\.issuer: is a link-local/],
    ['https://login', 'https://a:b@login', /:2: oidc\.issuer: holds a user or password/],
    ['https://gateway', 'http://gateway', /:5: oidc\.url: must be an https:\/\/ address/],
    ['gateway.example', 'gateway.example/admin', /:5: oidc\.url: is the address .* without a path/],
    ['[admins]', '[]', /oidc: names no group in roles or teams/],
    ['owner', 'admin', /oidc\.roles\.admin: unknown key/],
    ['client_id: model-gateway', 'scopes: profile', /oidc\.scopes: is a list of scopes/],
  ] as const) {
    const errors = await changed(from, to);
    assert.ok(
      errors.some((line) => expected.test(line)),
      errors.join('\n'),
    );
  }
  const local = least.replace('https://login.example', 'http://127.0.0.1:9000');
  assert.equal((await scene(local).load({ env })).oidc?.issuer, 'http://127.0.0.1:9000');
});

test('a reload does not change it: it is read at start only', async () => {
  const { load, write } = scene(least);
  const before = await load({ env });
  write('gateway.yaml', least.replace('[admins]', '[others]'));
  const after = await load({ env });
  assert.deepEqual(needRestart(before, after), ['oidc']);
});
