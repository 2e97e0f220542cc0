/** What samples show at upstreams of clouds, beside what the rows say themselves. */
import type { AnyDialect } from '../support/reading.ts';
import type { Shown } from './sample.ts';

type OfRows = { readonly [row: string]: Shown };

const at = (model: string): Shown => ({ behind: model });
/** It reads addresses. */
const reading = at('up-gemini/gemini-3-pro-preview');
const searching = at('generous-gemini/gemini-2.5-pro');
/** It takes no sampling parameters, and thinks by words. */
const newClaude = at('claude-converse/claude-opus-4-8');
const nova = at('claude-converse/amazon.nova-pro');

const versions = ['20250305', '20260209', '20260318'];
const searches = ['', '_2025_08_26', '_preview', '_preview_2025_03_11'];
const functions = ['local_shell_call', 'shell_call', 'apply_patch_call'] as const;

/** What is told of the same request at both. */
const both: { readonly [D in AnyDialect]: OfRows } = {
  chat: Object.fromEntries(
    ['another JSON value', 'no JSON'].map((kind) => [
      `messages[assistant].tool_calls[function].function.arguments (${kind})`,
      { noted: ['messages[assistant].tool_calls[function]'] },
    ]),
  ),
  messages: {
    'messages[].content[document].source[content].content': { named: 'messages.0.content.0' },
    'messages[].content[server_tool_use]': {
      noted: ['messages[assistant].content[web_search_tool_result]'],
    },
    'messages[].content[mcp_tool_use]': {
      noted: ['messages[assistant].content[mcp_tool_result]'],
    },
    'tools[custom].defer_loading (true)': { noted: ['tools'] },
    'thinking[enabled].display (summarized, updates)': { noted: ['thinking.block_binding'] },
  },
  responses: {
    'input[tool_search_call] (of the service)': { noted: ['input[tool_search_output]'] },
    ...Object.fromEntries(
      functions.map((call) => [
        `input[${call}]`,
        { noted: [`tools[${call.replace('_call', '')}].type`] },
      ]),
    ),
    ...Object.fromEntries(
      ['apply_patch', 'shell'].map((tool) => [
        `tool_choice[${tool}]`,
        { noted: [`tools[${tool}].type`] },
      ]),
    ),
    'tools[function].defer_loading (true)': { noted: ['tools'] },
    'tools[custom].defer_loading (true)': { noted: ['tools'] },
    'max_tool_calls (with a hosted tool)': { noted: ['tools[web_search]'] },
  },
};

const onGemini: { readonly [D in AnyDialect]: OfRows } = {
  chat: {
    ...both.chat,
    'messages[user].content[image_url].image_url.url (http or https)': reading,
    'messages[user].content[file].file.file_data (PDF)': { named: 'messages.0.content.0' },
    'messages[user].content[file].file.file_data (address of a PDF)': {
      ...reading,
      noted: ['messages[user].content[file]'],
    },
    'reasoning_effort (model that does not think)': at('up-gemini/gemini-2.0-flash'),
    'web_search_options (provider or route with server_tools)': {
      ...searching,
      noted: ['web_search_options.search_context_size'],
    },
    'web_search_options.search_context_size (low, high)': searching,
  },
  messages: {
    ...both.messages,
    'messages[].content[image].source[url].url': reading,
    'messages[].content[document].source[url]': reading,
    'messages[system].clear_at (never)': { noted: ['messages[system]'] },
    'messages[system].output_config.effort': { noted: ['messages[system]'] },
    'thinking[adaptive].display (summarized, updates)': { noted: ['thinking.block_binding'] },
    "inference_geo (global, or the provider's region)": searching,
    ...Object.fromEntries(
      versions.map((version) => [
        `tools[web_search_${version}] (provider or route with server_tools)`,
        { ...searching, noted: [`tools[web_search_${version}]`] },
      ]),
    ),
  },
  responses: {
    ...both.responses,
    'input[user].content[input_image].detail (original)': reading,
    'input[user].content[input_file].file_url': reading,
    ...Object.fromEntries(
      searches.map((kind) => [
        `tools[web_search${kind}] (provider or route with server_tools)`,
        searching,
      ]),
    ),
  },
};

/** A document needs a text beside it. */
const filled: Shown = { noted: ['messages'] };
const again: Shown = { noted: ['input[function_call]'] };
const refusedWhole: Shown = { named: 'messages.0.content.0' };

const onConverse: { readonly [D in AnyDialect]: OfRows } = {
  chat: {
    ...both.chat,
    'messages[user].content[image_url].image_url.url (data URL under the name of another format)': {
      noted: ['messages[user].content[image_url]'],
    },
    'messages[user].content[image_url].image_url.url (data URL of a PDF)': filled,
    'messages[user].content[image_url].image_url.url (http or https)': refusedWhole,
    'messages[user].content[file].file.file_data (PDF)': filled,
    'messages[user].content[file].file.file_data (text)': filled,
    'messages[user].content[file].file.file_data (address of a PDF)': refusedWhole,
    'messages[user].content[input_audio]': at('claude-converse/mistral.voxtral-small-24b-2507'),
    'tool_choice[allowed_tools].allowed_tools.mode (auto)': { named: 'tool_choice' },
    'tool_choice[allowed_tools].allowed_tools.mode (required)': { named: 'tool_choice' },
    'temperature (untunable model)': newClaude,
    'top_p (untunable model)': newClaude,
    'top_k (untunable model)': newClaude,
    'thinking[adaptive]': newClaude,
    'response_format[json_schema].json_schema.schema (model that enforces none)': nova,
    'reasoning_effort (model that does not think)': nova,
  },
  messages: {
    ...both.messages,
    'messages[].content[image].source[url].url': refusedWhole,
    'messages[].content[document].source[base64].data': filled,
    'messages[].content[document].citations.enabled (true)': filled,
    'messages[].content[document].context (of a PDF)': filled,
    'messages[].content[thinking] (written by another model)': nova,
    'messages[].content[redacted_thinking] (written by another model)': nova,
    'messages[system].clear_at (never)': filled,
    'messages[system].clear_at (next_user_message)': filled,
    'messages[system].output_config.effort': { ...newClaude, noted: ['messages'] },
    'temperature (untunable model)': newClaude,
    'top_p (untunable model)': newClaude,
    'top_k (upstream that does not)': newClaude,
    'thinking[adaptive].display (summarized, updates)': {
      ...newClaude,
      noted: ['thinking.block_binding'],
    },
    'thinking[adaptive].display (omitted)': newClaude,
    'output_config.effort': newClaude,
    'output_config.format.schema (upstream that enforces none)': nova,
    'output_format.schema (upstream that enforces none)': nova,
  },
  responses: {
    ...both.responses,
    'input[user].content[input_file].file_data (PDF)': { noted: ['input'] },
    'input[user].content[input_file].file_data (text)': { noted: ['input'] },
    'input[function_call].call_id': again,
    'input[function_call_output].output[input_text]': again,
    'input[function_call_output].output[input_image]': again,
    'input[function_call_output].output[input_file]': again,
    'temperature (untunable model)': newClaude,
    'top_p (untunable model)': newClaude,
    'text.format[json_schema].schema (model that enforces none)': nova,
  },
};

export const onClouds = { gemini: onGemini, converse: onConverse } as const;
