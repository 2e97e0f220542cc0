/**
 * Structured output (wire/translation.md §1.7, §2.1): as the model knows it, else as the input of a
 * forced tool, else as an instruction. Notes name the fields of the messages dialect, the only one that
 * is translated to this one.
 */
import type { Conversation, JsonObject, OutputFormat } from '../../core/conversation.ts';
import { unsupported } from '../../core/errors.ts';
import type { Notes } from '../../core/notes.ts';
import type { Steps } from '../../core/steps.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { asksToThink, jsonTool } from '../json-tool.ts';
import { cleanSchema } from '../tool-schema.ts';
import type { JsonMembers } from './fields.ts';
import { writeJsonTool } from './request-write-tools.ts';
import { isStrict } from './strict-schema.ts';

const path = ['output_config', 'format'];

export interface WrittenOutput {
  /** `response_format`, or the tool and the choice of it. */
  readonly members: JsonMembers;
  /** What the system prompt must say because the upstream does not enforce it. */
  readonly instruction: string | undefined;
}

/** @throws GatewayError `invalid_request` where nothing can hold the model to the schema. */
export function* writeOutput(
  conversation: Conversation,
  traits: UpstreamTraits,
  notes: Notes,
): Steps<WrittenOutput> {
  const { output } = conversation;
  if (output.type === 'text') return { members: {}, instruction: undefined };
  const { schema } = output;
  if (schema === undefined || traits.responseFormat === 'object') {
    return writeInstruction(schema, traits, notes);
  }
  if (traits.responseFormat === 'none') return yield* writeTool(conversation, traits, notes);
  const members = yield* writeFormat(output, schema, { traits, notes });
  return { members, instruction: undefined };
}

function writeInstruction(
  schema: JsonObject | undefined,
  { responseFormat }: UpstreamTraits,
  notes: Notes,
): WrittenOutput {
  notes.changed(path, 'asked for in the prompt, not enforced by the model');
  const rule = 'Answer with one JSON object and nothing else.';
  return {
    members: responseFormat === 'none' ? {} : { response_format: { type: 'json_object' } },
    instruction:
      schema === undefined
        ? rule
        : `${rule} It must match this JSON schema: ${JSON.stringify(schema)}`,
  };
}

function* writeTool(
  conversation: Conversation,
  traits: UpstreamTraits,
  notes: Notes,
): Steps<WrittenOutput> {
  const thinks = traits.efforts.length > 0 && asksToThink(conversation);
  const tool = traits.toolChoice ? jsonTool(conversation, thinks) : undefined;
  if (tool === undefined) {
    throw unsupported(path, 'This model cannot be held to a JSON schema in this request.');
  }
  notes.changed(path, 'asked for as the input of a tool');
  return { members: yield* writeJsonTool(tool, traits), instruction: undefined };
}

function* writeFormat(
  output: Extract<OutputFormat, { type: 'json' }>,
  schema: JsonObject,
  { traits, notes }: { readonly traits: UpstreamTraits; readonly notes: Notes },
): Steps<JsonMembers> {
  const { name = 'output', description } = output;
  const { schemaRules } = traits;
  const strict = schemaRules === undefined && (output.strict ?? isStrict(schema));
  if (output.strict !== false && !strict) notes.changed(path, notStrict(schemaRules));
  const clean =
    schemaRules === undefined ? schema : (yield* cleanSchema(schema, schemaRules)).schema;
  return {
    response_format: {
      type: 'json_schema',
      json_schema: {
        name,
        ...(description === undefined ? {} : { description }),
        schema: clean,
        strict,
      },
    },
  };
}

function notStrict(rules: UpstreamTraits['schemaRules']): string {
  return rules === undefined
    ? 'optional properties: not enforced strictly'
    : 'the model knows a part of JSON Schema only';
}
