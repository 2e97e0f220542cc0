/**
 * `GET /api/keys`: pages of keys by creation, spending or last use, with what they spent where that is wanted.
 * `GET /api/keys/names`: their ids and names alone.
 */
import { z } from 'zod';
import type { KeyFilter, KeyPage, ListedKey } from '../access/keys/keys.ts';
import type { JsonObject } from '../json/value.ts';
import type { UsageRow } from '../store/store.ts';
import { keyAnswer, keyJson, lastUseOf, type KeyRouteDeps } from './keys.ts';
import { isOwn, seesOnly } from './people/part.ts';
import type { Member } from './people/roles.ts';
import { spentPoliciesJson } from './policies.ts';
import { type AdminAnswer, AdminError, type AdminRoute, next, page, readInput } from './route.ts';
import { knownCost, type UsageRouteDeps } from './usage.ts';

const sorts = ['created', 'spend', 'used'] as const;

const keyPage = page.extend({
  text: z
    .string()
    .min(1, 'must not be empty')
    .max(200)
    .optional()
    .describe(
      'Only keys whose id, name, team, owner or tags contain this text. Pages may then be shorter.',
    ),
  team: z.string().max(200).optional().describe('Only keys of this team.'),
  state: z
    .enum(['active', 'expired', 'revoked'], 'must be one of active, expired, revoked')
    .optional()
    .describe('Only keys in this state.'),
  sort: z
    .enum(sorts, `must be one of ${sorts.join(', ')}`)
    .default('created')
    .describe(
      'spend: those that cost most in the last 30 days first. used: the last used first. Others follow in the order of creation.',
    ),
  with: z
    .literal('spend', 'must be spend')
    .optional()
    .describe('spend: adds spent_usd of the last 30 days, and what was spent of each budget.'),
});

const answer = z.strictObject({
  keys: z.array(
    keyAnswer.extend({
      spent_usd: z
        .number()
        .nullable()
        .optional()
        .describe('Cost of the last 30 days, with `with=spend`; null: no call has a known price.'),
    }),
  ),
  next,
});

const nameAnswer = z.strictObject({
  keys: z.array(z.strictObject({ id: z.string(), name: z.string() })),
  next,
});

type KeyListDeps = KeyRouteDeps & UsageRouteDeps;

type Page = z.output<typeof page>;

type WantedKeys = z.output<typeof keyPage> & {
  /** Whose part of the keys alone is shown. */
  readonly only: Member | undefined;
};

export function keyListRoutes(deps: KeyListDeps): readonly AdminRoute[] {
  const spending = new KeySpending(deps);
  return [
    {
      method: 'GET',
      path: '/api/keys',
      about: {
        summary: 'List the keys: first those from environment and config, then by creation time.',
        query: keyPage,
        answer,
      },
      run: ({ query, member }) =>
        list(deps, spending, { ...readInput(keyPage, query), only: seesOnly(member) }),
    },
    {
      method: 'GET',
      path: '/api/keys/names',
      about: {
        summary: 'List ids and names of the keys, in the order of /api/keys.',
        query: page,
        answer: nameAnswer,
      },
      run: ({ query, member }) => names(deps, readInput(page, query), seesOnly(member)),
    },
  ];
}

async function list(
  deps: KeyListDeps,
  spending: KeySpending,
  wanted: WantedKeys,
): Promise<AdminAnswer> {
  const now = deps.clock.wall();
  const found = existing(await pageOf(deps, spending, wanted));
  const keys =
    wanted.with === undefined
      ? found.keys.map((key) => keyJson(key, now))
      : await withSpending(deps, await spending.byKey(), found.keys);
  return { status: 200, body: { keys: [...keys], next: found.next ?? null } };
}

function names(
  { keys }: KeyListDeps,
  { limit, after }: Page,
  only: Member | undefined,
): AdminAnswer {
  const part = { limit, ...(after === undefined ? {} : { after }) };
  const found = existing(
    only === undefined
      ? keys.list(part)
      : keys.search({ within: (record) => isOwn(only, record) }, part),
  );
  const named = found.keys.map(({ record: { id, name } }) => ({ id, name }));
  return { status: 200, body: { keys: named, next: found.next ?? null } };
}

/** @throws AdminError where the page begins after a key that does not exist */
function existing(found: KeyPage | undefined): KeyPage {
  if (found === undefined) throw new AdminError(400, 'there is no key with this id', 'after');
  return found;
}

async function pageOf(
  { keys }: KeyListDeps,
  spending: KeySpending,
  { text, team, state, sort, limit, after, only }: WantedKeys,
): Promise<KeyPage | undefined> {
  const filter: KeyFilter = {
    ...(text === undefined ? {} : { text }),
    ...(team === undefined ? {} : { team }),
    ...(state === undefined ? {} : { state }),
    ...(only === undefined ? {} : { within: (record) => isOwn(only, record) }),
  };
  const part = { limit, ...(after === undefined ? {} : { after }) };
  if (sort === 'used') return keys.ranked(filter, lastUseOf, part);
  if (sort === 'spend') {
    const spent = await spending.byKey();
    const costOf = ({ record }: ListedKey): number | undefined => spent.get(record.id)?.nanodollars;
    return keys.ranked(filter, costOf, part);
  }
  return Object.keys(filter).length === 0 ? keys.list(part) : keys.search(filter, part);
}

async function withSpending(
  { store, clock }: KeyListDeps,
  spent: ReadonlyMap<string, UsageRow>,
  keys: readonly ListedKey[],
): Promise<readonly JsonObject[]> {
  const now = clock.wall();
  const policies = await spentPoliciesJson(
    { store, now },
    keys.map(({ record }) => ({
      holder: { kind: 'key', name: record.id },
      policy: record.policy,
    })),
  );
  return keys.map((key, i) => {
    const sums = spent.get(key.record.id);
    // No call at all is known to cost nothing.
    const spentUsd = sums === undefined ? 0 : knownCost(sums);
    return { ...keyJson(key, now), ...policies[i], spent_usd: spentUsd };
  });
}

const periodMs = 30 * 86_400_000;
/** One look at the ledger serves the pages of a list. */
const freshMs = 5000;

/** What each key spent in the last 30 days. */
class KeySpending {
  readonly #deps: UsageRouteDeps;
  #read: Promise<ReadonlyMap<string, UsageRow>> | undefined;
  #readAt = 0;

  constructor(deps: UsageRouteDeps) {
    this.#deps = deps;
  }

  /** By id; a key without a call is not in it. @throws StoreError */
  byKey(): Promise<ReadonlyMap<string, UsageRow>> {
    const now = this.#deps.clock.now();
    if (this.#read === undefined || now - this.#readAt > freshMs) {
      this.#readAt = now;
      const read = this.#sums();
      this.#read = read;
      // A failed read is not cached; its callers get the error.
      read.catch(() => {
        if (this.#read === read) this.#read = undefined;
      });
    }
    return this.#read;
  }

  async #sums(): Promise<ReadonlyMap<string, UsageRow>> {
    const { store, clock, flushLedger } = this.#deps;
    await flushLedger?.().catch(() => undefined);
    const rows = await store.calls.usage({ by: 'key', since: clock.wall() - periodMs, filter: {} });
    return new Map(rows.map((row) => [row.group, row]));
  }
}
