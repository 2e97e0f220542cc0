/** The operator's settings for all calls, in the form of each API: headers of InvokeModel, members of Converse. */
import type { CloudSettings } from '../../../core/cloud.ts';
import type { JsonMembers, JsonObject } from '../../../json/value.ts';

type CallSettings = Pick<CloudSettings, 'guardrail' | 'latency' | 'requestMetadata'>;

export function invokeHeaders({
  guardrail,
  latency,
  requestMetadata,
}: CallSettings): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  if (guardrail !== undefined) {
    const { id, version } = parsed(guardrail);
    headers.set('x-amzn-bedrock-guardrailidentifier', id);
    headers.set('x-amzn-bedrock-guardrailversion', version);
  }
  if (latency !== undefined) headers.set('x-amzn-bedrock-performanceconfig-latency', latency);
  if (requestMetadata !== undefined) {
    headers.set('x-amzn-bedrock-request-metadata', JSON.stringify(requestMetadata));
  }
  return headers;
}

export function converseMembers({ guardrail, latency, requestMetadata }: CallSettings): JsonObject {
  const members: JsonMembers = {};
  if (guardrail !== undefined) {
    const { id, version } = parsed(guardrail);
    members['guardrailConfig'] = { guardrailIdentifier: id, guardrailVersion: version };
  }
  if (latency !== undefined) members['performanceConfig'] = { latency };
  if (requestMetadata !== undefined) members['requestMetadata'] = { ...requestMetadata };
  return members;
}

/** An ARN contains colons itself. */
function parsed(guardrail: string): { readonly id: string; readonly version: string } {
  const colon = guardrail.lastIndexOf(':');
  return { id: guardrail.slice(0, colon), version: guardrail.slice(colon + 1) };
}
