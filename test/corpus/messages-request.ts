/** Messages requests, one for each top-level field and case. */
import type { MessageCreateParamsBase } from '@anthropic-ai/sdk/resources/beta/messages/messages';
import { objectSchema, type Samples } from './sample.ts';

type Sent = Partial<MessageCreateParamsBase>;
const openai = 'openai/gpt-4.1';
const openaiThinking = 'openai/gpt-5.2';
const long = 'u'.repeat(100);
const hash = 'aae37f9f7de396414419d9ed8d2321d450519b2d16797aab63c6ea51229c05a2';
const loose = { type: 'object', properties: { city: { type: 'string' } } };

const plain: Samples<Sent> = {
  model: { sends: {}, arrives: { messages: [{ role: 'user' }] } },
  'max_tokens (above 0)': { sends: { max_tokens: 77 }, arrives: { max_tokens: 77 } },
  'max_tokens (0)': { sends: { max_tokens: 0 }, unasked: true },
  'system.text': {
    sends: {
      system: [
        { type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '1h' } },
        { type: 'text', text: 'Be kind.' },
      ],
    },
    behind: 'openrouter/a/model',
    arrives: {
      messages: [
        {
          role: 'system',
          content: [
            { text: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '1h' } },
            { text: 'Be kind.' },
          ],
        },
        { role: 'user' },
      ],
    },
    also: ['system.cache_control'],
  },
  'system.citations': {
    sends: {
      system: [
        {
          type: 'text',
          text: 'Be brief.',
          citations: [
            {
              type: 'char_location',
              cited_text: 'Be',
              document_index: 0,
              document_title: null,
              start_char_index: 0,
              end_char_index: 2,
            },
          ],
        },
      ],
    },
    arrives: { messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user' }] },
  },
  'stop_sequences (up to 4)': {
    sends: { stop_sequences: ['A', 'B'] },
    arrives: { stop: ['A', 'B'] },
  },
  'stop_sequences (above 4)': {
    sends: { stop_sequences: ['A', 'B', 'C', 'D', 'E'] },
    absent: ['stop'],
  },
  stream: {
    sends: { stream: true },
    arrives: { stream: true, stream_options: { include_usage: true } },
  },
  'thinking[enabled].budget_tokens (from 10000)': {
    sends: { max_tokens: 20_000, thinking: { type: 'enabled', budget_tokens: 10_000 } },
    arrives: { reasoning_effort: 'high' },
  },
  'thinking[enabled].budget_tokens (from 5000)': {
    sends: { max_tokens: 20_000, thinking: { type: 'enabled', budget_tokens: 5000 } },
    arrives: { reasoning_effort: 'medium' },
  },
  'thinking[enabled].budget_tokens (from 2000)': {
    sends: { max_tokens: 20_000, thinking: { type: 'enabled', budget_tokens: 2000 } },
    arrives: { reasoning_effort: 'low' },
  },
  'thinking[enabled].budget_tokens (below)': {
    sends: { max_tokens: 20_000, thinking: { type: 'enabled', budget_tokens: 1024 } },
    behind: 'openai/gpt-5',
    arrives: { reasoning_effort: 'minimal' },
  },
  'thinking[enabled].display (summarized, updates)': {
    sends: {
      max_tokens: 20_000,
      thinking: {
        type: 'enabled',
        budget_tokens: 2000,
        display: 'summarized',
        block_binding: { prefix_mismatch_behavior: 'drop_block' },
      },
    },
    arrives: { reasoning_effort: 'low' },
    also: ['thinking[enabled].block_binding'],
  },
  'thinking[enabled].display (omitted)': {
    sends: {
      max_tokens: 20_000,
      thinking: { type: 'enabled', budget_tokens: 2000, display: 'omitted' },
    },
    arrives: { reasoning_effort: 'low' },
  },
  'thinking[adaptive].display (summarized, updates)': {
    sends: {
      thinking: {
        type: 'adaptive',
        display: 'updates',
        block_binding: { prefix_mismatch_behavior: 'error' },
      },
    },
    arrives: { reasoning_effort: 'high' },
    also: ['thinking[adaptive].block_binding'],
  },
  'thinking[adaptive].display (omitted)': {
    sends: { thinking: { type: 'adaptive', display: 'omitted' } },
    arrives: { reasoning_effort: 'high' },
  },
  'thinking[disabled]': {
    sends: { thinking: { type: 'disabled' } },
    behind: openaiThinking,
    arrives: { reasoning_effort: 'none' },
  },
  'thinking[between_tools]': {
    sends: { thinking: { type: 'between_tools' } },
    behind: openaiThinking,
    arrives: { reasoning_effort: 'none' },
  },
  'output_config.effort': {
    sends: { output_config: { effort: 'xhigh' } },
    behind: openaiThinking,
    arrives: { reasoning_effort: 'xhigh' },
  },
  'output_config.format.schema (every property is required)': {
    sends: { output_config: { format: { type: 'json_schema', schema: objectSchema } } },
    arrives: {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'output', schema: objectSchema, strict: true },
      },
    },
  },
  'output_config.format.schema (upstream that enforces none)': {
    sends: { output_config: { format: { type: 'json_schema', schema: objectSchema } } },
    behind: 'deepseek/deepseek-chat',
    arrives: { response_format: { type: 'json_object' } },
  },
  'output_config.format.schema (some are optional)': {
    sends: { output_config: { format: { type: 'json_schema', schema: loose } } },
    arrives: {
      response_format: { type: 'json_schema', json_schema: { schema: loose, strict: false } },
    },
  },
  'output_config.task_budget': {
    sends: { output_config: { task_budget: { type: 'tokens', total: 50_000, remaining: 20_000 } } },
  },
  'output_format.schema (every property is required)': {
    sends: { output_format: { type: 'json_schema', schema: objectSchema } },
    arrives: { response_format: { json_schema: { schema: objectSchema, strict: true } } },
  },
  'output_format.schema (upstream that enforces none)': {
    sends: { output_format: { type: 'json_schema', schema: objectSchema } },
    behind: 'deepseek/deepseek-chat',
    arrives: { response_format: { type: 'json_object' } },
  },
  'output_format.schema (some are optional)': {
    sends: { output_format: { type: 'json_schema', schema: loose } },
    arrives: { response_format: { json_schema: { schema: loose, strict: false } } },
  },
  'metadata.user_id (up to 64 characters)': {
    sends: { metadata: { user_id: 'user-1' } },
    arrives: { user: 'user-1' },
  },
  'metadata.user_id (longer)': {
    sends: { metadata: { user_id: long } },
    behind: openai,
    arrives: { safety_identifier: hash },
  },
  'service_tier (auto)': { sends: { service_tier: 'auto' } },
  'service_tier (standard_only, OpenAI)': {
    sends: { service_tier: 'standard_only' },
    behind: openai,
    arrives: { service_tier: 'default' },
  },
  'service_tier (other upstreams)': {
    sends: { service_tier: 'standard_only' },
    absent: ['service_tier'],
  },
  'speed (standard)': { sends: { speed: 'standard' } },
  'speed (fast, OpenAI)': {
    sends: { speed: 'fast' },
    behind: openai,
    arrives: { service_tier: 'fast' },
  },
  'speed (fast, other upstreams)': { sends: { speed: 'fast' }, absent: ['service_tier'] },
  'cache_control.type': {
    sends: { cache_control: { type: 'ephemeral' } },
    absent: ['cache_control'],
  },
  'cache_control.ttl': {
    sends: { cache_control: { type: 'ephemeral', ttl: '1h' } },
    absent: ['cache_control'],
  },
  'inference_geo (another region)': { sends: { inference_geo: 'eu' } },
  "inference_geo (global, or the provider's region)": {
    sends: { inference_geo: 'eu' },
    behind: 'generous-chat/a/model',
    absent: ['inference_geo'],
  },
  container: { sends: { container: { id: 'c', skills: [{ type: 'custom', skill_id: 's' }] } } },
  mcp_servers: { sends: { mcp_servers: [{ type: 'url', name: 'm', url: 'https://example.com' }] } },
  'fallbacks (a list)': { sends: { fallbacks: [{ model: 'claude-sonnet-4-5' }] } },
  'fallbacks (default)': { sends: { fallbacks: 'default' } },
  fallback_credit_token: { sends: { fallback_credit_token: { token: 't', mode: 'strict' } } },
  context_management: {
    sends: {
      context_management: {
        edits: [
          { type: 'clear_tool_uses_20250919', keep: { type: 'tool_uses', value: 2 } },
          { type: 'clear_thinking_20251015', keep: 'all' },
          { type: 'compact_20260112' },
        ],
      },
    },
  },
  compaction: { sends: { compaction: { type: 'summarize', instructions: 'Be brief.' } } },
  diagnostics: { sends: { diagnostics: { previous_message_id: 'msg_1' } } },
  billing_policy: { sends: { billing_policy: { type: 'billing_policy', bill_to: 'self' } } },
  thread: { sends: { thread: { type: 'create' } }, refusedByAll: true },
  betas: { sends: {}, headers: { 'anthropic-beta': 'context-management-2025-06-27' } },
  user_profile_id: { sends: {}, headers: { 'anthropic-user-profile-id': 'p' } },
  workspace_id: { sends: {}, headers: { 'anthropic-workspace-id': 'w' } },
};

const older: Samples<
  Sent & { readonly temperature?: number; readonly top_p?: number; readonly top_k?: number }
> = {
  'temperature (tunable model)': { sends: { temperature: 0.3 }, arrives: { temperature: 0.3 } },
  'temperature (untunable model)': {
    sends: { temperature: 0.3 },
    behind: openaiThinking,
    absent: ['temperature'],
  },
  'top_p (tunable model)': { sends: { top_p: 0.4 }, arrives: { top_p: 0.4 } },
  'top_p (untunable model)': { sends: { top_p: 0.4 }, behind: openaiThinking, absent: ['top_p'] },
  'top_k (upstream that knows it)': {
    sends: { top_k: 20 },
    behind: 'vllm/m',
    arrives: { top_k: 20 },
  },
  'top_k (upstream that does not)': { sends: { top_k: 20 }, absent: ['top_k'] },
};

export const messagesRequestSamples: Samples<object> = {
  ...plain,
  ...older,
  'any other field': {
    sends: { made_up: 1 },
    named: 'made_up',
    beyondSchema: true,
    absent: ['made_up'],
  },
};
