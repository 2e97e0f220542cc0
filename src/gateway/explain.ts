/**
 * Describes what a call would do, without doing it: the targets in order, and the request for each. It uses the
 * functions that serve calls (`plan`, `requestOf`), so that both agree.
 */
import { type GatewayError, asGatewayError } from '../core/errors.ts';
import { type Note, NoteList } from '../core/notes.ts';
import type { Target } from '../core/provider.ts';
import type { Call } from '../core/call.ts';
import type { Gateway } from './gateway.ts';
import { type TokenCount, countTokens } from './count-tokens.ts';
import { nameOf } from './targets/health.ts';
import { maxAttempts } from './targets/retries.ts';
import { plan } from './targets/routing.ts';
import { type PreparedRequest, requestOf } from './upstream-request.ts';

export interface ExplainedTarget {
  readonly target: Target;
  /** Position from 1 in the order of attempts; absent = skipped. */
  readonly place?: number;
  /** Why it has this position, or is skipped. */
  readonly why: string;
  /** Its current failure state; absent = none. */
  readonly failure?: string;
  /** The request that it would get; absent = none can be made. */
  readonly request?: PreparedRequest;
  /** Losses and changes of the translation. */
  readonly notes: readonly Note[];
  /** Why no request can be made for it. */
  readonly refusal?: GatewayError;
}

export interface ExplainedCall {
  /** The targets of the route: first those that are tried, in order. */
  readonly targets: readonly ExplainedTarget[];
  /** Why no target is tried. */
  readonly refusal?: GatewayError;
  /** Token count of the prompt at the first target. */
  readonly prompt?: TokenCount;
}

/** Sends no request, and changes no state of the gateway. */
export async function explainCall(gateway: Gateway, call: Call): Promise<ExplainedCall> {
  const planned = plannedTargets(gateway, call);
  const { targets } = planned;
  const left = call.route.targets.filter((target) => !targets.includes(target));
  const explained: ExplainedTarget[] = [];
  for (const [i, target] of targets.entries()) {
    explained.push({
      ...(await explainTarget(gateway, call, target)),
      place: i + 1,
      why: whyHere(gateway, call, i),
    });
  }
  const why = whyOmitted(gateway, targets);
  for (const target of left) {
    explained.push({ ...(await explainTarget(gateway, call, target)), why });
  }
  const [first] = explained;
  const { refusal } = planned;
  return {
    targets: explained,
    ...(refusal === undefined ? {} : { refusal }),
    ...(first === undefined ? {} : { prompt: await countPromptOf(gateway, call, first.target) }),
  };
}

function plannedTargets(
  gateway: Gateway,
  call: Call,
): { readonly targets: readonly Target[]; readonly refusal?: GatewayError } {
  try {
    return { targets: plan(call, gateway) };
  } catch (error) {
    return { targets: [], refusal: asGatewayError(error) };
  }
}

async function explainTarget(
  gateway: Gateway,
  call: Call,
  routed: Target,
): Promise<Omit<ExplainedTarget, 'why'>> {
  const notes = new NoteList();
  const { team, keyId } = call.caller;
  const { learned } = gateway;
  const { byOwnApi } = routed;
  const missing = byOwnApi !== undefined && call.head.compacts !== true && learned.lacksApi(routed);
  const target = missing ? byOwnApi : routed;
  const traits = learned.traits(target, team ?? keyId);
  const failure = gateway.health.describe(nameOf(target), target.credential);
  const known = { target, ...(failure === undefined ? {} : { failure }) };
  try {
    const request = await requestOf(gateway, call, target, { traits, notes });
    return { ...known, request, notes: notes.all };
  } catch (error) {
    return { ...known, refusal: asGatewayError(error), notes: notes.all };
  }
}

/** @param targets the ones that are tried */
function whyOmitted({ health }: Gateway, targets: readonly Target[]): string {
  if (targets.length === 0) return 'skipped: no target of the route accepts calls now';
  return targets.some((target) => health.isReady(target))
    ? 'skipped: another target of the route is ready'
    : 'skipped: no target of the route is ready, and another one will be retried sooner';
}

/** Phrases as in docs/user/routing.md. */
function whyHere({ routing, clock }: Gateway, call: Call, index: number): string {
  const { order, targets, affinity } = call.route;
  const target = targets[index];
  if (target === undefined || targets.length === 1) return 'the only target of the route';
  const later =
    index >= maxAttempts ? `, and only if an earlier one is refused without a request` : '';
  const name = nameOf(target);
  const warm = affinity === false ? '' : ', after the target that this conversation had last';
  switch (order) {
    case 'listed':
      return `order listed: in the order of the config${later}`;
    case 'weighted':
      return `order weighted: random by the weights of the config, the same for all calls of a conversation${later}`;
    case 'cheapest':
      return `order cheapest: by price${later}`;
    case 'least-busy':
      return `order least-busy: ${routing.load.of(name)} calls of this process run there${warm}${later}`;
    case 'fastest': {
      const ms = routing.speed.of(name, { streamed: call.head.stream, now: clock.now() });
      const speed = ms === undefined ? 'unknown yet' : `${Math.round(ms)} ms to the first event`;
      return `order fastest: ${speed}${warm}${later}`;
    }
    default:
      return order satisfies never;
  }
}

/** By the model's public tokenizer, else by an estimate: a provider's counter would need a request. */
function countPromptOf(gateway: Gateway, call: Call, target: Target): Promise<TokenCount> {
  const { dialect, source } = call;
  return countTokens(gateway, {
    target,
    unasked: true,
    source,
    dialect,
    counting: false,
    header: (name) => call.header(name),
    signal: new AbortController().signal,
  });
}
