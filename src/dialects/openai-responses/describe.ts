/** Describes Responses bodies. What they share with chat bodies is read by the description of those. */
import type { RequestParameters } from '../../core/description.ts';
import { isObject, type Json } from '../../json/value.ts';
import { BodyDescription, userTextsOf } from '../shared/describe.ts';
import { isArray } from './fields.ts';

/** Members without a cost of their own: what is in the prompt, and the cap, is reserved. */
const prompting: ReadonlySet<string> = new Set(['input', 'instructions', 'max_output_tokens']);
/** Caps of other formats. A server that reads one may write more than the cap of this format allows. */
const otherCaps: ReadonlySet<string> = new Set(['max_tokens', 'max_completion_tokens']);

export class ResponsesDescription extends BodyDescription {
  override opening(): string {
    const { instructions, input } = this.body;
    return this.openingOf(instructions, isArray(input) ? input : [input ?? null]);
  }

  override *userTexts(): Generator<string> {
    const { input } = this.body;
    if (typeof input === 'string') yield input;
    if (isArray(input)) for (const item of input) yield* userTextsOf(item);
  }

  override capMember(): string {
    return 'max_output_tokens';
  }

  protected override isHarmless(member: string): boolean {
    return prompting.has(member) || (!otherCaps.has(member) && super.isHarmless(member));
  }

  override parameters(): RequestParameters {
    const { max_output_tokens: cap, text } = this.options;
    const format = isObject(text) ? text['format'] : undefined;
    return {
      ...super.parameters(),
      maxTokens: Number.isSafeInteger(cap) ? Number(cap) : undefined,
      json: isObject(format) && isJson(format['type']),
    };
  }
}

function isJson(type: Json | undefined): boolean {
  return type === 'json_object' || type === 'json_schema';
}
