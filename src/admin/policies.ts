/** `/api/teams` and `/api/tags`: what keys may use together. */
import { z } from 'zod';
import type { AuditLog } from '../access/audit.ts';
import { HeldBudget } from '../access/held-limits.ts';
import type {
  Holder,
  ListedPolicy,
  Policies,
  SharedKind,
  WritePolicy,
} from '../access/policies.ts';
import { overEverywhere, windowAt } from '../access/windows.ts';
import {
  label,
  namedByMembers,
  type PolicyForm,
  policyMembers,
  readNamedBy,
  readPolicy,
  tag,
} from '../config/access-schema.ts';
import type { JsonObject } from '../json/value.ts';
import { dollarsText } from '../core/money.ts';
import { type CommonPolicy, noPolicy, type Policy, type RateLimit } from '../core/policy.ts';
import type { Clock } from '../core/runtime.ts';
import type { Store } from '../store/store.ts';
import { seesOnly, teamsOf } from './people/part.ts';
import type { Member } from './people/roles.ts';
import {
  type AdminAnswer,
  AdminError,
  type AdminRequest,
  type AdminRoute,
  dateText,
  next,
  noBody,
  page,
  readInput,
} from './route.ts';

/** @throws AdminError 400 that names the member. */
export function policyOf(form: PolicyForm, base: Policy): Policy {
  const read = readPolicy(form, base);
  if ('path' in read) throw new AdminError(400, read.message, read.path);
  return read;
}

/** The members of a body that make its policy. */
export function policyFormOf(body: PolicyForm): PolicyForm {
  const names = Object.keys(policyMembers);
  return Object.fromEntries(Object.entries(body).filter(([name]) => names.includes(name)));
}

const count = z.number().int();
const usd = z.string().describe('Dollars, exactly.');

export const policyAnswer = {
  rpm: count.nullable().describe('Requests per minute, all models together; null = no limit.'),
  tpm: count.nullable().describe('Tokens per minute; null = no limit.'),
  concurrent: count.nullable().describe('Concurrent calls; null = no limit.'),
  limits: z.array(
    z.strictObject({
      kind: z.enum(['requests', 'tokens', 'concurrent']),
      amount: count,
      model: z.string().nullable().describe('Glob of the models to count; null = all.'),
    }),
  ),
  budgets: z.array(
    z.strictObject({
      usd,
      per: z.enum(['day', 'week', 'month', 'ever']),
      time_zone: z.string(),
      window: z.string().optional().describe('The current period; only when one policy is shown.'),
      starts_at: z.iso
        .datetime()
        .nullable()
        .optional()
        .describe('Null: the period has no beginning.'),
      ends_at: z.iso.datetime().nullable().optional(),
      spent_usd: usd.optional(),
    }),
  ),
};

export function policyJson({ limits, budgets }: Policy): JsonObject {
  return {
    rpm: overall(limits, 'requests'),
    tpm: overall(limits, 'tokens'),
    concurrent: overall(limits, 'concurrent'),
    limits: limits.map(({ kind, amount, model }) => ({ kind, amount, model: model ?? null })),
    budgets: budgets.map(({ nanodollars, per, timeZone }) => ({
      usd: dollarsText(nanodollars),
      per,
      time_zone: timeZone,
    })),
  };
}

const namedByAnswer = {
  keys: z
    .array(z.string())
    .describe('Keys that may set the tag by x-gateway-tags, in addition to keys that have it.'),
  teams: z.array(z.string()).describe('Teams whose keys may set the tag.'),
};

/** Whose policy it is. */
export interface Held {
  readonly holder: Holder;
  readonly policy: Policy;
}

interface SpendingScope {
  readonly store: Store;
  readonly now: number;
}

interface FreshScope extends SpendingScope {
  readonly flushLedger: (() => Promise<void>) | undefined;
}

/**
 * The same, and what was spent in the current window of each budget, calls that just ended included. @throws StoreError
 */
export async function spentPolicyJson(
  { flushLedger, ...scope }: FreshScope,
  held: Held,
): Promise<JsonObject> {
  if (held.policy.budgets.length > 0) await flushLedger?.().catch(() => undefined);
  const [json = {}] = await spentPoliciesJson(scope, [held]);
  return json;
}

/** The same for several, with one question to the store. @throws StoreError */
export async function spentPoliciesJson(
  { store, now }: SpendingScope,
  all: readonly Held[],
): Promise<readonly JsonObject[]> {
  const budgets = all.map(({ holder, policy }) =>
    policy.budgets.map((budget) => new HeldBudget(holder, budget)),
  );
  const counters = budgets.flat().map(({ counter }) => counter);
  const spent = counters.length === 0 ? [] : await store.calls.spent(overEverywhere(now), counters);
  const known = new Map(
    spent.map(({ counter, window, nanodollars }) => [`${window} ${counter}`, nanodollars]),
  );
  return all.map(({ policy }, i) => ({
    ...policyJson(policy),
    budgets: (budgets[i] ?? []).map((each) => spentBudgetJson(each, known, now)),
  }));
}

/** @param spent nanodollars by window and counter */
function spentBudgetJson(
  held: HeldBudget,
  spent: ReadonlyMap<string, number>,
  now: number,
): JsonObject {
  const { budget } = held;
  const { counter, window, endsAt } = held.window(now);
  const { startsAt } = windowAt(budget.per, budget.timeZone, now);
  return {
    usd: dollarsText(budget.nanodollars),
    per: budget.per,
    time_zone: budget.timeZone,
    window,
    starts_at: startsAt === undefined ? null : dateText(startsAt),
    ends_at: endsAt === undefined ? null : dateText(endsAt),
    spent_usd: dollarsText(spent.get(`${window} ${counter}`) ?? 0),
  };
}

function overall(limits: readonly RateLimit[], kind: RateLimit['kind']): number | null {
  return limits.find((limit) => limit.kind === kind && limit.model === undefined)?.amount ?? null;
}

export interface PolicyRouteDeps {
  readonly policies: Policies;
  readonly store: Store;
  readonly audit: AuditLog;
  readonly clock: Clock;
  readonly flushLedger?: () => Promise<void>;
}

const bodies = {
  team: z.strictObject(policyMembers),
  tag: z.strictObject({ ...policyMembers, ...namedByMembers }),
};

const teamAnswer = z.strictObject({
  name: z.string(),
  source: z
    .enum(['store', 'config'])
    .describe('Policies that the config declares can be changed only there.'),
  ...policyAnswer,
});
const answers = { team: teamAnswer, tag: teamAnswer.extend(namedByAnswer) };

const names = { team: z.strictObject({ name: label }), tag: z.strictObject({ name: tag }) };

export function policyRoutes(deps: PolicyRouteDeps): readonly AdminRoute[] {
  return [...routesOf('team', deps), ...routesOf('tag', deps)];
}

function routesOf(kind: SharedKind, deps: PolicyRouteDeps): readonly AdminRoute[] {
  const path = `/api/${kind}s`;
  const answer = answers[kind];
  return [
    {
      method: 'GET',
      path,
      about: {
        summary: `List the ${kind}s that have limits or budgets, by name.`,
        query: page,
        answer: z.strictObject({ [`${kind}s`]: z.array(answer), next }),
      },
      run: ({ query, member }) => list(kind, deps, readInput(page, query), seesOnly(member)),
    },
    {
      method: 'GET',
      path: `${path}/:name`,
      about: { summary: `Show a ${kind} and what was spent of its budgets.`, answer },
      run: async ({ id, member }) => {
        const only = seesOnly(member);
        if (only !== undefined && !teamsOf(only).includes(id)) unknown(kind, id);
        return { status: 200, body: await shown(kind, deps, id) };
      },
    },
    {
      method: 'PUT',
      path: `${path}/:name`,
      about: {
        summary: `Replace the limits and budgets of a ${kind}.`,
        body: bodies[kind],
        answer,
      },
      run: (request) => put(kind, deps, request),
    },
    {
      method: 'DELETE',
      path: `${path}/:name`,
      about: {
        summary: `Remove the limits and budgets of a ${kind}.`,
        answer: z.strictObject({ name: z.string(), deleted: z.literal(true) }),
      },
      run: async ({ id, body, actor }) => {
        readInput(noBody, body);
        const write: WritePolicy = (change, before) =>
          deps.audit.change(change, {
            actor,
            action: `${kind}.delete`,
            subject: `${kind}:${id}`,
            ...(before === undefined ? {} : { before: sharedJson(kind, before) }),
          });
        if ((await deps.policies.delete(kind, id, write)) === undefined) unknown(kind, id);
        return { status: 200, body: { name: id, deleted: true } };
      },
    },
  ];
}

/** @param only shows the teams of this person; they are few, and no second page follows */
function list(
  kind: SharedKind,
  { policies }: PolicyRouteDeps,
  { limit, after }: z.output<typeof page>,
  only: Member | undefined,
): AdminAnswer {
  if (only !== undefined) {
    const own = teamsOf(only).flatMap((name) => policies.listed(kind, name) ?? []);
    return { status: 200, body: { [`${kind}s`]: own.map(listedJson), next: null } };
  }
  const found = policies.list(kind, { limit, ...(after === undefined ? {} : { after }) });
  const listed = found.policies.map((each) => listedJson(each));
  return { status: 200, body: { [`${kind}s`]: listed, next: found.next ?? null } };
}

async function put(
  kind: SharedKind,
  deps: PolicyRouteDeps,
  { id, body, actor }: AdminRequest,
): Promise<AdminAnswer> {
  const { name } = readInput(names[kind], { name: id });
  const policy = kind === 'tag' ? tagOf(body) : policyOf(readInput(bodies.team, body), noPolicy);
  const write: WritePolicy = (change, before) =>
    deps.audit.change(change, {
      actor,
      action: `${kind}.set`,
      subject: `${kind}:${name}`,
      ...(before === undefined ? {} : { before: sharedJson(kind, before) }),
      after: sharedJson(kind, policy),
    });
  await deps.policies.put({ kind, name, ...policy }, write);
  return { status: 200, body: await shown(kind, deps, name) };
}

async function shown(
  kind: SharedKind,
  { policies, store, clock, flushLedger }: PolicyRouteDeps,
  name: string,
): Promise<JsonObject> {
  const found = policies.listed(kind, name) ?? unknown(kind, name);
  const scope = { store, now: clock.wall(), flushLedger };
  const spent = await spentPolicyJson(scope, { holder: { kind, name }, policy: found.policy });
  return { ...listedJson(found), ...spent };
}

function tagOf(body: AdminRequest['body']): CommonPolicy {
  const form = readInput(bodies.tag, body);
  return { ...policyOf(form, noPolicy), ...readNamedBy(form) };
}

function listedJson({ policy, source }: ListedPolicy): JsonObject {
  return { name: policy.name, source, ...sharedJson(policy.kind, policy) };
}

function sharedJson(kind: SharedKind, policy: CommonPolicy): JsonObject {
  // The keys and teams that may set a tag, as the admin API shows them.
  return {
    ...policyJson(policy),
    ...(kind === 'tag'
      ? { keys: policy.namedBy?.keys ?? [], teams: policy.namedBy?.teams ?? [] }
      : {}),
  };
}

function unknown(kind: SharedKind, name: string): never {
  throw new AdminError(404, `There is no ${kind} "${name}" with limits or budgets.`);
}

// Limits and budgets as the admin API takes and shows them.
