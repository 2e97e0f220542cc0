import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { it } from 'node:test';
import {
  readPolicy,
  type PolicyForm,
  type PolicyProblem,
} from '../../../src/config/access-schema.ts';
import { noPolicy, type Policy } from '../../../src/core/policy.ts';
import { scene } from './scene.ts';

const digest = `sha256:${'ab'.repeat(32)}`;
const other = `sha256:${'CD'.repeat(32)}`;

it('S7 keys, teams and tags of the file, with their lines', async () => {
  const { load } = scene(`keys:
  ci:
    digest: ${digest}
    models: ["openai/*"]
    endpoints: [chat]
    team: research
    owner: Ada
    tags: [nightly]
    cidrs: [10.0.0.0/8, "2001:db8::/32"]
    strict: true
    shrink: false
    cache: auto
    expires: 2030-01-31
    rpm: 60
    tpm: 100000
    concurrent: 5
    limits: [{ kind: requests, amount: 10, model: openai/gpt-5* }]
    budget: 10.50
    per: month
    time_zone: Europe/Berlin
    budgets: [{ usd: "0.000000001", per: day }]
  cd: { digest: [${other}, ${digest.replace('ab', 'ba')}], models: ["*"] }
teams:
  research: { budget: 500, per: ever }
tags:
  nightly: { rpm: 1 }
trusted_proxies: [127.0.0.1, 192.168.0.0/16]
`);
  const { keys, policies, trustedProxies, origins } = await load();
  assert.deepEqual(keys, [
    {
      id: 'ci',
      name: 'ci',
      digests: ['ab'.repeat(32)],
      models: ['openai/*'],
      endpoints: ['chat'],
      team: 'research',
      owner: 'Ada',
      tags: ['nightly'],
      cidrs: ['10.0.0.0/8', '2001:db8::/32'],
      strict: true,
      cache: 'auto',
      shrink: false,
      expiresAt: Date.UTC(2030, 0, 31),
      policy: {
        limits: [
          { kind: 'concurrent', amount: 5 },
          { kind: 'tokens', amount: 100_000 },
          { kind: 'requests', amount: 60 },
          { kind: 'requests', amount: 10, model: 'openai/gpt-5*' },
        ],
        budgets: [
          { nanodollars: 10_500_000_000, per: 'month', timeZone: 'Europe/Berlin' },
          { nanodollars: 1, per: 'day', timeZone: 'Europe/Berlin' },
        ],
      },
      where: 'gateway.yaml:2',
    },
    {
      id: 'cd',
      name: 'cd',
      digests: ['cd'.repeat(32), `ba${'ab'.repeat(31)}`],
      models: ['*'],
      policy: noPolicy,
      where: 'gateway.yaml:22',
    },
  ]);
  assert.deepEqual(policies, [
    {
      kind: 'team',
      name: 'research',
      limits: [],
      budgets: [{ nanodollars: 500_000_000_000, per: 'ever', timeZone: 'UTC' }],
    },
    { kind: 'tag', name: 'nightly', limits: [{ kind: 'requests', amount: 1 }], budgets: [] },
  ]);
  assert.deepEqual(trustedProxies, ['127.0.0.1', '192.168.0.0/16']);
  const shown = origins.filter(({ path }) => /^(keys|teams|tags|trusted)/.test(path));
  assert.deepEqual(
    shown.map(({ path, origin }) => [path, origin]),
    [
      ['keys.ci', 'gateway.yaml:2'],
      ['keys.cd', 'gateway.yaml:22'],
      ['teams.research', 'gateway.yaml:24'],
      ['tags.nightly', 'gateway.yaml:26'],
      ['trusted_proxies', 'gateway.yaml:27'],
    ],
  );
  assert.match(shown[0]?.value ?? '', /\$10\.5 a month \(Europe\/Berlin\)/);
  assert.ok(!JSON.stringify(origins).includes('abababab'), 'a digest is not shown');
});

it('without such sections there are none', async () => {
  const { keys, policies, trustedProxies } = await scene('log_level: warn\n').load();
  assert.deepEqual([keys, policies, trustedProxies], [[], [], []]);
});

const mistakes: readonly (readonly [string, RegExp])[] = [
  [`keys: { ci: { digest: ${digest} } }`, /keys\.ci\.models: /],
  [`keys: { ci: { digest: ${digest}, models: [] } }`, /keys\.ci\.models: list the models/],
  [`keys: { ci: { models: ['*'] } }`, /keys\.ci\.digest: /],
  [`keys: { ci: { digest: gw_secret, models: ['*'] } }`, /keys\.ci\.digest: is not sha256:/],
  [`keys: { 'c i': { digest: ${digest}, models: ['*'] } }`, /a key name has 1 to 64 letters/],
  [
    `keys: { ci: { digest: ${digest}, models: ['*'] }, cd: { digest: ${digest}, models: ['*'] } }`,
    /keys\.cd\.digest: is the digest of ci, too/,
  ],
  [
    `keys: { ci: { digest: 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', models: ['*'] } }`,
    /keys\.ci\.digest: is the hash of an empty text/,
  ],
  [`keys: { ci: { digest: ${digest}, models: ['*'], expires: 2030-02-31T00:00Z } }`, /calendar/],
  [`keys: { ci: { digest: ${digest}, models: ['*'], expires: 30d } }`, /expires: is not a date/],
  [
    `keys: { ci: { digest: ${digest}, models: ['*'], cidrs: [10.1.1.1/8] } }`,
    /cidrs\[0\]: has bits/,
  ],
  [`keys: { ci: { digest: ${digest}, models: ['*'], endpoints: [admin] } }`, /endpoints\[0\]/],
  [`keys: { ci: { digest: ${digest}, models: ['*'], rpn: 1 } }`, /keys\.ci\.rpn: unknown key.*rpm/],
  ['teams: { red: { budget: 5 } }', /teams\.red\.per: is missing/],
  ['teams: { red: { per: day } }', /teams\.red\.per: sets the period/],
  ['teams: { red: { budget: -5, per: day } }', /teams\.red\.budget: is not an amount/],
  ['teams: { red: { rpm: 0 } }', /teams\.red\.rpm: must be at least 1/],
  ['teams: { red: { rpm: 1.5 } }', /teams\.red\.rpm: /],
  [
    'teams: { red: { budget: 0.0000000004, per: day } }',
    /teams\.red\.budget: is less than the smallest amount, \$0\.000000001 /,
  ],
  ['teams: { red: { budget: 5, per: day, time_zone: Mars/X } }', /time_zone: is not a time zone/],
  ['tags: { "a b": { rpm: 1 } }', /a tag has no spaces/],
  [
    'tags: { a: { rpm: 1, limits: [{ kind: requests, amount: 2 }] } }',
    /tags\.a\.limits: has duplicate entries/,
  ],
  [
    'tags: { a: { budgets: [{ usd: 1, per: day }, { usd: 2, per: day }] } }',
    /tags\.a\.budgets: has duplicate entries/,
  ],
  ['trusted_proxies: [proxy.internal]', /trusted_proxies\[0\]: is not an address range/],
];

for (const [yaml, message] of mistakes) {
  it(`N3 is refused with its place: ${yaml.slice(0, 70)}`, async () => {
    const errors = await scene(yaml).errors();
    assert.equal(errors.length, 1, errors.join('\n'));
    assert.match(errors[0] ?? '', message);
    assert.match(errors[0] ?? '', /^gateway\.yaml:1: /);
  });
}

const base: Policy = {
  limits: [
    { kind: 'requests', amount: 60 },
    { kind: 'requests', amount: 5, model: 'x/*' },
  ],
  budgets: [
    { nanodollars: 5e9, per: 'day', timeZone: 'Europe/Berlin' },
    { nanodollars: 50e9, per: 'month', timeZone: 'UTC' },
  ],
};
const [, ofModel] = base.limits;
const [daily, monthly] = base.budgets;

const changes: readonly (readonly [string, PolicyForm, Policy | PolicyProblem])[] = [
  ['nothing', {}, base],
  [
    'another rpm',
    { rpm: 9 },
    { ...base, limits: [{ kind: 'requests', amount: 9 } as const, ofModel ?? []].flat() },
  ],
  ['no rpm', { rpm: null }, { ...base, limits: [ofModel ?? []].flat() }],
  ['no limits', { limits: null }, { ...base, limits: [] }],
  [
    'other limits',
    { limits: [{ kind: 'tokens', amount: 7 }] },
    { ...base, limits: [{ kind: 'tokens', amount: 7 }] },
  ],
  [
    'another budget of a period keeps its zone',
    { budget: 1e9, per: 'day' },
    {
      ...base,
      budgets: [
        { nanodollars: 1e9, per: 'day', timeZone: 'Europe/Berlin' } as const,
        monthly ?? [],
      ].flat(),
    },
  ],
  [
    'a budget of one more period',
    { budget: 1e9, per: 'ever' },
    {
      ...base,
      budgets: [{ nanodollars: 1e9, per: 'ever', timeZone: 'UTC' } as const, ...base.budgets],
    },
  ],
  [
    'no budget of a period',
    { budget: null, per: 'day' },
    { ...base, budgets: [monthly ?? []].flat() },
  ],
  ['no budget', { budget: null }, { ...base, budgets: [] }],
  ['no budgets', { budgets: null }, { ...base, budgets: [] }],
  [
    'another zone',
    { time_zone: 'Asia/Tokyo' },
    {
      ...base,
      budgets: [daily ?? [], monthly ?? []]
        .flat()
        .map((each) => ({ ...each, timeZone: 'Asia/Tokyo' })),
    },
  ],
];

for (const [name, form, expected] of changes) {
  it(`a change of limits: ${name}`, () => {
    assert.deepEqual(readPolicy(form, base), expected);
  });
}

it('S4 a name of a key that is a secret, or looks like one, is refused and shown nowhere', async () => {
  const secret = 'correct-horse-battery-staple';
  const own = createHash('sha256').update(secret).digest('hex');
  const names: readonly (readonly [string, string])[] = [
    [secret, own],
    ['sk-proj-4f9aK2mQ8sT1vX7z', 'ab'.repeat(32)],
    ['gw_a1b2c3d4_0123456789abcdefghijklmnopqrstuvwxyz', 'ab'.repeat(32)],
    ['q8Zt3Lk9Vw2Xr5Yp7Nb1Mc4D', 'ab'.repeat(32)],
  ];
  for (const [name, digest64] of names) {
    const { load } = scene(
      `keys:\n  "${name}":\n    digest: sha256:${digest64}\n    models: ["*"]\n`,
    );
    await assert.rejects(load(), (error: Error) => {
      assert.match(error.message, /gateway\.yaml:2: keys: .*secret of a key/);
      assert.ok(!error.message.includes(name), error.message);
      return true;
    });
  }
  for (const name of ['ci', 'team-research-2026', 'nightly_Build_of_the_Eval_Pipeline_7']) {
    const text = `keys:\n  "${name}":\n    digest: ${digest}\n    models: ["*"]\n`;
    assert.equal((await scene(text).load()).keys[0]?.id, name);
  }
});
