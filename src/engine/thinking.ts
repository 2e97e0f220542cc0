/** Reads what a request says about reasoning, and turns it into what the model's template knows. */
import { invalid, unsupported } from './engine-error.ts';
import { isObject, member, type Json, type JsonObject } from './json.ts';

export interface ThinkingWishes {
  readonly effort?: string;
  /** `chat_template_kwargs`: values for the template, by the names it uses. */
  readonly templateValues: JsonObject;
}

/** What a template has to do with reasoning. */
export interface ThinkingSwitches {
  /** The template's source. */
  readonly template: string;
  /** The model marks its reasoning with tags. */
  readonly thinks: boolean;
}

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];
/** Words that templates with levels of effort know. */
const levels: { readonly [effort: string]: string } = {
  minimal: 'low',
  xhigh: 'high',
  max: 'high',
};
const reserved = ['messages', 'tools', 'add_generation_prompt', 'bos_token', 'eos_token'];

/** @throws EngineError 400 that names the member. */
export function readThinking(body: JsonObject): ThinkingWishes {
  const values = member(body, 'chat_template_kwargs') ?? {};
  if (!isObject(values)) {
    throw invalid('"chat_template_kwargs" must be an object.', 'chat_template_kwargs');
  }
  const effort = member(body, 'reasoning_effort');
  if (effort === undefined) return { templateValues: values };
  if (typeof effort === 'string' && efforts.includes(effort))
    return { effort, templateValues: values };
  throw invalid(`"reasoning_effort" is one of ${efforts.join(', ')}.`, 'reasoning_effort');
}

/**
 * The values for the template. A switch that it does not know is refused, unless it asks for what
 * happens anyway.
 * @throws EngineError 400 that names the member.
 */
export function templateValues(wishes: ThinkingWishes, model: ThinkingSwitches): JsonObject {
  const values: Record<string, Json | undefined> = { ...effortValues(wishes.effort, model) };
  for (const [name, value] of Object.entries(wishes.templateValues)) {
    if (knows(model, name) && !reserved.includes(name)) values[name] = value;
    else if (!(name === 'enable_thinking' && value === false && !model.thinks)) {
      throw unsupported(
        `The chat template of this model does not know "${name}".`,
        `chat_template_kwargs.${name}`,
      );
    }
  }
  return values;
}

function effortValues(effort: string | undefined, model: ThinkingSwitches): JsonObject {
  if (effort === undefined) return {};
  const field = 'reasoning_effort';
  if (effort === 'none') {
    if (knows(model, 'enable_thinking')) return { enable_thinking: false };
    if (!model.thinks) return {};
    throw unsupported('This model cannot answer without reasoning.', field);
  }
  if (knows(model, field)) return { reasoning_effort: levels[effort] ?? effort };
  if (knows(model, 'enable_thinking')) return { enable_thinking: true };
  // It reasons as it does; there is nothing to say how much.
  if (model.thinks) return {};
  throw unsupported('This model does not reason.', field);
}

function knows({ template }: ThinkingSwitches, name: string): boolean {
  return /^\w+$/.test(name) && new RegExp(String.raw`\b${name}\b`, 'u').test(template);
}
