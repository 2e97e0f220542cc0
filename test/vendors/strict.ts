/** All strict vendors behind one gateway. They are played by scripts over real sockets. */
import type { JsonObject } from '../../src/json/value.ts';
import { chatAnswer, type ChatReply } from '../upstream/chat.ts';
import { ScriptedUpstream, type Answer, type Received, type Script } from '../upstream/scripted.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { faultsOf, type Fault, type VendorRules } from './rules.ts';
import { anthropic, vendors } from './tables.ts';

export interface StrictVendors {
  readonly gateway: TestGateway;
  /** What a vendor was sent. */
  script(rules: VendorRules): Script;
  /** What a vendor refused so far. */
  refusals(rules: VendorRules): readonly Fault[];
  stop(): Promise<void>;
}

/** The route to a model that takes no loss. */
export function strictName(model: string): string {
  return `strict-${model}`;
}

/** What a vendor answers to a request that it takes. */
export type Answering = (rules: VendorRules, request: Received) => Answer;

/**
 * @param answering default: the text "ok".
 * @param more routes, by name.
 */
export async function startStrictVendors(
  answering: Answering = (_, request) => said({ text: 'ok' }, request),
  more: JsonObject = {},
): Promise<StrictVendors> {
  const upstream = await ScriptedUpstream.start();
  const everyone = [...vendors, anthropic];
  const scripts = new Map<VendorRules, Script>();
  const refused = new Map<VendorRules, Fault[]>();
  for (const rules of everyone) {
    const faults: Fault[] = [];
    refused.set(rules, faults);
    scripts.set(
      rules,
      upstream.script(rules.model, (request) => {
        const [fault] = faultsOf(rules, request.json);
        if (fault === undefined) return answering(rules, request);
        faults.push(fault);
        const { status, body } = rules.refuse(fault);
        return { status, body: JSON.stringify(body) };
      }),
    );
  }
  const address = `http://127.0.0.1:${upstream.port}`;
  const providers = everyone.map(({ provider, config }) => {
    const base_url = provider === 'anthropic' ? address : `${address}/v1`;
    return [provider, { base_url, api_key: `key-of-${provider}`, ...config }];
  });
  const models = vendors.map(({ provider, model }) => [
    strictName(model),
    { targets: [`${provider}/${model}`], strict: true },
  ]);
  const gateway = await startTestGateway({
    providers: Object.fromEntries(providers),
    models: { ...Object.fromEntries(models), ...more },
  });
  return {
    gateway,
    script: (rules) => found(scripts.get(rules)),
    refusals: (rules) => found(refused.get(rules)),
    stop: async () => {
      await gateway.stop();
      await upstream.close();
    },
  };
}

/** A reply, streamed or whole as the request asks. */
export function said(reply: ChatReply, request: Received): Answer {
  return chatAnswer(reply, request.json['stream'] === true);
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('no such vendor');
  return value;
}
