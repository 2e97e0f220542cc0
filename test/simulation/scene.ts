/** Providers, routes, prices and keys of every history. */
import type { Policy } from '../../src/core/policy.ts';
import type { Price, PriceSettings } from '../../src/core/money.ts';
import type { Timeouts } from '../../src/core/provider.ts';
import { Secret } from '../../src/core/secret.ts';
import type { DeclaredProvider } from '../../src/providers/registry.ts';
import type { DeclaredRoute } from '../../src/providers/routes.ts';

export const timeouts: Timeouts = {
  connectMs: 500,
  firstEventMs: 2000,
  documentMs: 4000,
  idleMs: 1500,
  totalMs: 12_000,
};

const provider = (id: string, dialect: 'openai-chat' | 'anthropic-messages'): DeclaredProvider => ({
  id,
  dialect,
  baseUrl: `http://${id}.test/${dialect === 'openai-chat' ? 'v1' : ''}`,
  apiKey: new Secret('upstream-secret-0123456789'),
  headers: new Map(),
});

export const declared: readonly DeclaredProvider[] = [
  provider('alpha', 'openai-chat'),
  provider('beta', 'anthropic-messages'),
  // Two credentials: each has its own waits and its own state.
  {
    ...provider('gamma', 'openai-chat'),
    credentials: ['first', 'second'].map((name) => ({
      name,
      key: new Secret(`key-${name}-0123456789`),
    })),
  },
];

export const models = ['one', 'other', 'both', 'any'] as const;

const orders = ['weighted', 'least-busy', 'fastest', 'cheapest'] as const;

/** The routes; a reload turns their order round. */
export function routes(version: number): readonly DeclaredRoute[] {
  const target = (id: string): DeclaredRoute['targets'][number] => ({
    provider: id,
    model: 'm',
    weight: 1,
  });
  const turned = (ids: readonly string[]): readonly string[] =>
    version % 2 === 0 ? ids : ids.toReversed();
  return [
    { name: 'one', targets: [target('alpha')], order: 'listed' },
    { name: 'other', targets: [target('beta')], order: 'listed' },
    {
      name: 'both',
      targets: turned(['alpha', 'beta']).map(target),
      order: 'listed',
      ...(version % 4 === 3 ? {} : { hedge: { afterMs: 100 } }),
    },
    {
      name: 'any',
      targets: turned(['gamma', 'beta', 'alpha']).map(target),
      order: orders[version % orders.length] ?? 'listed',
      retry: { afterSent: version % 2 === 0, contextOverflow: false },
      ...(version % 2 === 0 ? { hedge: { afterMs: 30 } } : {}),
    },
  ];
}

/** Nanodollars of an input and an output token. */
export const rates = { input: 1000, output: 10_000 } as const;

export function priceSettings(version: number): PriceSettings {
  // More expensive from reload to reload: calls that run keep the price they were admitted at.
  const price: Price = {
    rates: {
      input: rates.input * 1000 * (1 + version),
      output: rates.output * 1000 * (1 + version),
    },
    tiers: [],
    source: 'simulated',
  };
  const models = declared.map(({ id }) => ({ pattern: `${id}/*`, price }));
  return { models };
}

export const policies: { readonly [name: string]: Policy } = {
  free: { limits: [], budgets: [] },
  limited: {
    limits: [
      { kind: 'concurrent', amount: 2 },
      { kind: 'requests', amount: 12 },
      { kind: 'tokens', amount: 400 },
    ],
    budgets: [],
  },
  paid: {
    limits: [{ kind: 'concurrent', amount: 3 }],
    budgets: [
      { nanodollars: 280_000, per: 'ever', timeZone: 'UTC' },
      { nanodollars: 230_000, per: 'day', timeZone: 'UTC' },
    ],
  },
};
