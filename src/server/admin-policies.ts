/** `/api/teams` and `/api/tags`: what keys may use together. */
import { z } from 'zod';
import type { AuditLog } from '../access/audit.ts';
import type { ListedPolicy, Policies, SharedKind, WritePolicy } from '../access/policies.ts';
import { label, tag } from '../config/access-form.ts';
import { policyMembers } from '../config/policy-form.ts';
import type { JsonObject } from '../core/conversation.ts';
import { noPolicy } from '../core/policy.ts';
import type { Clock } from '../core/runtime.ts';
import type { Store } from '../store/store.ts';
import { next, noBody, page } from './admin-pages.ts';
import {
  AdminError,
  readInput,
  type AdminAnswer,
  type AdminRequest,
  type AdminRoute,
} from './admin-route.ts';
import { policyAnswer, policyJson, policyOf, spentPolicyJson } from './policy-json.ts';

export interface PolicyRouteParts {
  readonly policies: Policies;
  readonly store: Store;
  readonly audit: AuditLog;
  readonly clock: Clock;
}

const policyBody = z.strictObject(policyMembers);

const answer = z.strictObject({
  name: z.string(),
  source: z
    .enum(['store', 'config'])
    .describe('What the config declares can be changed there only.'),
  ...policyAnswer,
});

const names = { team: z.strictObject({ name: label }), tag: z.strictObject({ name: tag }) };

export function policyRoutes(parts: PolicyRouteParts): readonly AdminRoute[] {
  return [...routesOf('team', parts), ...routesOf('tag', parts)];
}

function routesOf(kind: SharedKind, parts: PolicyRouteParts): readonly AdminRoute[] {
  const path = `/api/${kind}s`;
  return [
    {
      method: 'GET',
      path,
      about: {
        summary: `List the ${kind}s that have limits or budgets, by name.`,
        query: page,
        answer: z.strictObject({ [`${kind}s`]: z.array(answer), next }),
      },
      run: ({ query }) => list(kind, parts, readInput(page, query)),
    },
    {
      method: 'GET',
      path: `${path}/:name`,
      about: { summary: `Show a ${kind}, and what its budgets have spent.`, answer },
      run: async ({ id }) => ({ status: 200, body: await shown(kind, parts, id) }),
    },
    {
      method: 'PUT',
      path: `${path}/:name`,
      about: {
        summary: `Set what a ${kind} may use, in the place of what it was.`,
        body: policyBody,
        answer,
      },
      run: (request) => put(kind, parts, request),
    },
    {
      method: 'DELETE',
      path: `${path}/:name`,
      about: {
        summary: `Take the limits and budgets of a ${kind} away.`,
        answer: z.strictObject({ name: z.string(), deleted: z.literal(true) }),
      },
      run: async ({ id, body, actor }) => {
        readInput(noBody, body);
        const write: WritePolicy = (change, before) =>
          parts.audit.change(change, {
            actor,
            action: `${kind}.delete`,
            subject: `${kind}:${id}`,
            ...(before === undefined ? {} : { before: policyJson(before) }),
          });
        if ((await parts.policies.delete(kind, id, write)) === undefined) unknown(kind, id);
        return { status: 200, body: { name: id, deleted: true } };
      },
    },
  ];
}

function list(
  kind: SharedKind,
  { policies }: PolicyRouteParts,
  { limit, after }: z.output<typeof page>,
): AdminAnswer {
  const found = policies.list(kind, { limit, ...(after === undefined ? {} : { after }) });
  const listed = found.policies.map((each) => listedJson(each));
  return { status: 200, body: { [`${kind}s`]: listed, next: found.next ?? null } };
}

async function put(
  kind: SharedKind,
  parts: PolicyRouteParts,
  { id, body, actor }: AdminRequest,
): Promise<AdminAnswer> {
  const { name } = readInput(names[kind], { name: id });
  const policy = policyOf(readInput(policyBody, body), noPolicy);
  const write: WritePolicy = (change, before) =>
    parts.audit.change(change, {
      actor,
      action: `${kind}.set`,
      subject: `${kind}:${name}`,
      ...(before === undefined ? {} : { before: policyJson(before) }),
      after: policyJson(policy),
    });
  await parts.policies.put({ kind, name, ...policy }, write);
  return { status: 200, body: await shown(kind, parts, name) };
}

async function shown(
  kind: SharedKind,
  { policies, store, clock }: PolicyRouteParts,
  name: string,
): Promise<JsonObject> {
  const found = policies.listed(kind, name) ?? unknown(kind, name);
  const scope = { store, now: clock.wall() };
  const spent = await spentPolicyJson(scope, { kind, name }, found.policy);
  return { ...listedJson(found), ...spent };
}

function listedJson({ policy, source }: ListedPolicy): JsonObject {
  return { name: policy.name, source, ...policyJson(policy) };
}

function unknown(kind: SharedKind, name: string): never {
  throw new AdminError(404, `There is no ${kind} "${name}" with limits or budgets.`);
}
