/**
 * Reads a whole Responses request into the canonical conversation, for translation only. The head was checked before.
 */
import type {
  Conversation,
  Effort,
  OutputFormat,
  Reasoning,
  Sampling,
} from '../../../core/conversation.ts';
import { unsupported } from '../../../core/errors.ts';
import { type Notes, withMemberPaths, withPath } from '../../../core/notes.ts';
import type { Sealer } from '../../../core/secret.ts';
import { noteStrangers } from '../../../core/shape.ts';
import { isObject, type Json, type JsonObject, textOf, isArray } from '../../../json/value.ts';
import { badValue, isPresent } from '../fields.ts';
import { dialectId } from '../items.ts';
import { readTurns } from './read-items.ts';
import { readToolChoice, Toolbox } from './read-tools.ts';
import { knownFields, requestShape } from '../shape.ts';
import { encryptedReasoning } from './write.ts';

/** @throws GatewayError `invalid_request` for what the canonical form cannot hold. */
export function readRequest(body: JsonObject, notes: Notes, sealer?: Sealer): Conversation {
  refuseUntranslatable(body);
  noteStrangers(body, requestShape, notes);
  noteLost(body, notes);
  const toolbox = readTools(body, notes);
  const { system, turns } = readTurns(body, { notes, sealer, tools: toolbox });
  if (system.length === 0 && turns.length === 0) {
    throw badValue(['input'], 'holds no content at all');
  }
  const toolChoice = readToolChoice(body, toolbox);
  const endUser = textOf(body['safety_identifier']) || textOf(body['user']);
  const { input: _input, ...kept } = body;
  return {
    system,
    turns: withPath(turns, ['input']),
    tools: toolbox.finish(toolChoice),
    ...(toolChoice === undefined
      ? {}
      : { toolChoice: withPath({ ...toolChoice }, ['tool_choice']) }),
    ...(body['parallel_tool_calls'] === false ? { parallelTools: false } : {}),
    sampling: readSampling(body),
    output: readOutputFormat(body),
    reasoning: readReasoning(body),
    ...(endUser === '' ? {} : { endUser }),
    // All other members: the answer repeats them, and writers find the ones they know (shared/request/responses-fields.ts).
    extras: withMemberPaths(
      { [dialectId]: kept },
      {
        parallelTools: ['parallel_tool_calls'],
        endUser: [textOf(body['safety_identifier']) === '' ? 'user' : 'safety_identifier'],
      },
    ),
  };
}

/** Refuses members whose loss the client would misread, or wait for in vain. */
function refuseUntranslatable(body: JsonObject): void {
  const { top_logprobs: logprobs, include, instructions, prompt, generate, moderation } = body;
  if (isArray(instructions)) {
    throw unsupported(
      ['instructions'],
      'This model takes instructions as a text only; send messages at the beginning of `input`.',
    );
  }
  if (typeof logprobs === 'number' && logprobs > 0) {
    throw unsupported(['top_logprobs'], 'This model does not report log probabilities.');
  }
  if (isArray(include)) {
    const index = include.indexOf('message.output_text.logprobs');
    if (index !== -1) {
      throw unsupported(['include', index], 'This model does not report log probabilities.');
    }
  }
  if (isObject(prompt)) {
    throw unsupported(
      ['prompt'],
      "Prompt templates belong to one provider's account; send their text as `instructions`.",
    );
  }
  if (generate === false) {
    throw unsupported(['generate'], 'Only a WebSocket can be warmed up without an answer.');
  }
  if (isObject(moderation) && blocksContent(moderation)) {
    throw unsupported(['moderation'], 'This model has no moderation that blocks.');
  }
}

/** Values of `include` by the published schema. A translated answer has no items of hosted tools. */
const harmlessIncludes: ReadonlySet<Json> = new Set([
  'file_search_call.results',
  'web_search_call.results',
  'web_search_call.action.sources',
  'message.input_image.image_url',
  'computer_call_output.output.image_url',
  'code_interpreter_call.outputs',
  encryptedReasoning,
]);

function blocksContent(moderation: JsonObject): boolean {
  const policy = moderation['policy'];
  if (!isObject(policy)) return false;
  return Object.values(policy).some((rule) => isObject(rule) && rule['mode'] === 'block');
}

/** Notes members that change the answer and exist in this API only. */
function noteLost(body: JsonObject, notes: Notes): void {
  const { truncation, reasoning, tools, include } = body;
  if (isPresent(truncation) && truncation !== 'disabled') {
    notes.lost(['truncation'], 'a prompt that does not fit is refused');
  }
  if (isPresent(body['context_management'])) {
    notes.lost(['context_management'], 'the model does not shorten its context');
  }
  if (isPresent(body['moderation'])) notes.lost(['moderation'], 'not known to the model');
  if (isObject(reasoning) && reasoning['mode'] === 'pro') {
    notes.lost(['reasoning', 'mode'], 'the model has one mode only');
  }
  const hosted = isArray(tools) && tools.some((tool) => isObject(tool) && isHosted(tool));
  if (isPresent(body['max_tool_calls']) && hosted) {
    notes.lost(['max_tool_calls'], 'calls of hosted tools are not counted');
  }
  if (body['service_tier'] === 'ultrafast') {
    notes.changed(['service_tier'], 'asked for as `fast`');
  }
  if (isArray(include)) noteIncludes(include, notes);
  for (const [key, value] of Object.entries(body)) {
    if (isPresent(value) && !knownFields.has(key)) notes.lost([key], 'not known to the model');
  }
}

function noteIncludes(include: readonly Json[], notes: Notes): void {
  const index = include.findIndex((value) => !harmlessIncludes.has(value));
  if (index !== -1) notes.lost(['include', index], 'not known to the model');
}

function isHosted({ type }: JsonObject): boolean {
  return type !== 'function' && type !== 'custom' && type !== 'namespace';
}

/** Tools in a stable order: those of the request first, so that tools of later items do not move them. */
function readTools(body: JsonObject, notes: Notes): Toolbox {
  const toolbox = new Toolbox(notes);
  toolbox.add(body['tools'], ['tools']);
  const { input } = body;
  if (!isArray(input)) return toolbox;
  input.forEach((item, i) => {
    if (!isObject(item)) return;
    const { type } = item;
    if (type === 'additional_tools' || type === 'tool_search_output') {
      toolbox.add(item['tools'], ['input', i, 'tools']);
    }
  });
  return toolbox;
}

function readSampling(body: JsonObject): Sampling {
  const { max_output_tokens: cap, temperature, top_p: topP } = body;
  const read: Sampling = {
    ...(typeof cap === 'number' ? { maxOutputTokens: cap } : {}),
    ...(typeof temperature === 'number' ? { temperature } : {}),
    ...(typeof topP === 'number' ? { topP } : {}),
  };
  return withPath(read, ['max_output_tokens']);
}

function readOutputFormat({ text }: JsonObject): OutputFormat {
  const format = isObject(text) ? text['format'] : undefined;
  if (!isObject(format)) return { type: 'text' };
  const { type, schema, name, description, strict } = format;
  if (type === 'text') return { type: 'text' };
  if (type === 'json_object') return withPath({ type: 'json' }, ['text', 'format']);
  if (type !== 'json_schema') {
    throw unsupported(['text', 'format', 'type'], 'This model does not know this format.');
  }
  const read: OutputFormat = {
    type: 'json',
    ...(isObject(schema) ? { schema } : {}),
    ...(typeof name === 'string' ? { name } : {}),
    ...(typeof description === 'string' ? { description } : {}),
    ...(typeof strict === 'boolean' ? { strict } : {}),
  };
  return withPath(read, ['text', 'format']);
}

const efforts: readonly Effort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** Without a requested summary the client gets no text of reasoning, only the sealed value. */
function readReasoning(body: JsonObject): Reasoning {
  const reasoning = isObject(body['reasoning']) ? body['reasoning'] : {};
  const effort = readEffort(reasoning['effort']);
  const shown: Reasoning = requestsSummary(reasoning)
    ? { hidden: false }
    : { hidden: true, unasked: true };
  return withPath({ ...(effort === undefined ? {} : { effort }), ...shown }, [
    'reasoning',
    'effort',
  ]);
}

/** @param reasoning the member of a request */
export function requestsSummary({ summary, generate_summary: older }: JsonObject): boolean {
  return isPresent(summary) || isPresent(older);
}

function readEffort(value: Json | undefined): Effort | undefined {
  if (!isPresent(value)) return undefined;
  const effort = efforts.find((known) => known === value);
  if (effort === undefined) {
    throw badValue(['reasoning', 'effort'], `must be one of ${efforts.join(', ')}`);
  }
  return effort;
}
