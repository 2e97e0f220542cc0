/** What Gemini and Converse upstreams get of each row of messages requests. */
import { approx, exact, ignore, near, reject, warn, type Column } from '../decision.ts';

/** What is decided alike at both. */
const both: Column = {
  model: exact('', 'the address names it'),
  'messages[].content[text].citations': ignore('the text stays, without its source'),
  'messages[].content[image].source[file]': reject("ids belong to one provider's file store"),
  'messages[].content[image].transformations.oversized_image (downsize)': ignore('the default'),
  'messages[].content[image].transformations.oversized_image (error)': warn(
    'the model decides what is too large',
  ),
  'messages[].content[document].source[text].media_type': exact(''),
  'messages[].content[document].source[file]': reject("ids belong to one provider's file store"),
  'messages[].content[document].citations.enabled (false)': ignore('the default'),
  'messages[].content[document].citations.enabled (true)': warn(
    'the model does not cite documents',
  ),
  'messages[].content[document].context (of a PDF)': warn('a file has only a name'),
  'messages[].content[thinking] (written by another model)': warn(
    'reasoning is not shown to other models',
  ),
  'messages[].content[redacted_thinking] (written by another model)': warn(
    'only its own provider can read it',
  ),
  'messages[].content[tool_use].caller[direct]': ignore('the default'),
  'messages[].content[tool_use].caller[code_execution_20250825]': ignore(
    'the caller does not change the call',
  ),
  'messages[].content[tool_use].caller[code_execution_20260120]': ignore(
    'the caller does not change the call',
  ),
  'messages[].content[tool_use].toolset_name': warn('not known to the model'),
  'messages[].content[tool_result].content[text].citations': ignore(
    'the text stays, without its source',
  ),
  'messages[].content[tool_result].content[browser_state]': reject(
    'it belongs to the browser toolset',
  ),
  'messages[].content[tool_result].is_error (false)': ignore('the default'),
  'messages[].content[tool_result].toolset_name': warn('not known to the model'),
  'messages[].content[container_upload]': warn('not known to the model'),
  'messages[].content[mcp_tool_listing]': reject('no MCP server is called'),
  'messages[].content[fallback]': warn('not known to the model'),
  'messages[system].clear_at (never)': ignore('the default'),
  'messages[system].clear_at (next_user_message)': warn(
    'this model knows no such field of a message',
  ),
  'max_tokens (0)': warn('no cache to warm: an empty answer without a model call'),
  'system.citations': ignore('nothing is cited'),
  stream: exact('', 'the address names it'),
  'tools[custom].defer_loading (false)': ignore('the default'),
  'tools[custom].eager_input_streaming': ignore('a hint about speed'),
  'tools[custom].input_examples': ignore('a hint'),
  'tools[custom].allowed_callers': ignore('the model calls directly'),
  'tools[text_editor_20250728]': warn('not known to the model'),
  "tools[web_search_20250305] (beside the client's own tools)": warn('the model has no web search'),
  "tools[web_search_20260209] (beside the client's own tools)": warn('the model has no web search'),
  "tools[web_search_20260318] (beside the client's own tools)": warn('the model has no web search'),
  'tools[tool_search_tool_bm25_20251119]': approx('', 'all are offered at once'),
  'tools[tool_search_tool_regex_20251119]': approx('', 'all are offered at once'),
  'tools[tool_search_tool_bm25]': approx('', 'all are offered at once'),
  'tools[tool_search_tool_regex]': approx('', 'all are offered at once'),
  'tools[web_fetch_*': reject('nothing would run it'),
  'tools[code_*': reject('nothing would run it'),
  'tools[advisor_20260301]': reject('nothing would run it'),
  'tools[mcp_toolset]': reject('nothing would run it'),
  'tools[computer_*': reject('nothing would run it'),
  'tools[browser_toolset_20260801]': reject('nothing would run it'),
  'tool_choice[auto].disable_parallel_tool_use (false)': ignore('the default'),
  'tool_choice[auto].disable_parallel_tool_use (true)': approx('', 'only the first call is kept'),
  'tool_choice[any].disable_parallel_tool_use (false)': ignore('the default'),
  'tool_choice[any].disable_parallel_tool_use (true)': approx('', 'only the first call is kept'),
  'tool_choice[tool].disable_parallel_tool_use (false)': ignore('the default'),
  'tool_choice[tool].disable_parallel_tool_use (true)': approx('', 'only the first call is kept'),
  'thinking[enabled].display (summarized, updates)': ignore('the model decides'),
  'thinking[enabled].display (omitted)': exact('', 'the gateway omits the text'),
  'thinking[enabled].block_binding': warn('not known to the model'),
  'thinking[adaptive].display (summarized, updates)': ignore('the model decides'),
  'thinking[adaptive].display (omitted)': exact('', 'the gateway omits the text'),
  'thinking[adaptive].block_binding': warn('not known to the model'),
  'output_config.task_budget': warn('not known to the model'),
  'metadata.user_id': warn('no id of the end user there'),
  'service_tier (auto)': exact('', 'the default there as well'),
  'speed (standard)': ignore('the default'),
  'speed (fast, OpenAI)': warn('the model has one speed'),
  'speed (fast, other upstreams)': warn('the model has one speed'),
  'inference_geo (another region)': reject('the upstream could not keep this promise'),
  container: reject('the upstream runs no containers'),
  mcp_servers: reject('the upstream calls no MCP servers'),
  'fallbacks (a list)': reject('the route decides on fallbacks'),
  'fallbacks (default)': warn('not known to the model'),
  fallback_credit_token: warn('not known to the model'),
  context_management: warn('not known to the model'),
  compaction: warn('not known to the model'),
  diagnostics: warn('not known to the model'),
  billing_policy: warn('not known to the model'),
  thread: reject('the whole history is needed'),
  betas: ignore('a header; foreign upstreams know no betas'),
  user_profile_id: ignore('a header'),
  workspace_id: ignore('a header'),
  'any other field': warn('passed on to messages upstreams only'),
};

export const messagesOnGemini: Column = {
  ...both,
  'messages[].content[text].text': exact('contents[user].parts.text'),
  'messages[].content[text].cache_control': ignore('the provider caches by itself'),
  'messages[].content[image].source[base64].data': exact('contents[user].parts.inlineData.data'),
  'messages[].content[image].source[base64].media_type': exact(
    'contents[user].parts.inlineData.mimeType',
  ),
  'messages[].content[image].source[url].url': exact('contents[user].parts.fileData.fileUri'),
  'messages[].content[image].cache_control': ignore('the provider caches by itself'),
  'messages[].content[document].source[base64].data': exact('contents[user].parts.inlineData.data'),
  'messages[].content[document].source[base64].media_type': exact(
    'contents[user].parts.inlineData.mimeType',
  ),
  'messages[].content[document].source[text].data': near(
    'contents[user].parts.text',
    'below its title',
  ),
  'messages[].content[document].source[content].content': approx(
    'contents[user].parts.text',
    'a document is shown as its text and images',
  ),
  'messages[].content[document].source[url]': exact(
    'contents[user].parts.fileData.fileUri',
    'its address',
  ),
  'messages[].content[document].cache_control': ignore('the provider caches by itself'),
  'messages[].content[document].context (of a text)': near(
    'contents[user].parts.text',
    'in the line above the text',
  ),
  'messages[].content[document].title': warn(
    'data there has no name; of a text: the line above it',
  ),
  'messages[].content[search_result]': approx('contents[user].parts.text', 'as text'),
  'messages[].content[thinking] (written by a model like the one behind)': exact(
    'contents[model].parts.thoughtSignature',
    'on the part that it came with',
  ),
  'messages[].content[redacted_thinking] (written by a model like the one behind)': exact(
    'contents[model].parts.thoughtSignature',
    'on the part that it came with',
  ),
  'messages[].content[tool_use].id': exact('contents[model].parts.functionCall.id'),
  'messages[].content[tool_use].name': exact(
    'contents[model].parts.functionCall.name',
    'shortened deterministically above 64 characters',
  ),
  'messages[].content[tool_use].input': exact('contents[model].parts.functionCall.args'),
  'messages[].content[tool_use].cache_control': ignore('the provider caches by itself'),
  'messages[].content[tool_result].tool_use_id': exact('contents[model].parts.functionCall.id'),
  'messages[].content[tool_result].content[text].text': exact(
    'contents[user].parts.functionResponse.response.output',
  ),
  'messages[].content[tool_result].content[text].cache_control': ignore(
    'the provider caches by itself',
  ),
  'messages[].content[tool_result].content[image]': near(
    'contents[user].parts.inlineData.data',
    'in the next content, where older models take none in a result',
  ),
  'messages[].content[tool_result].content[search_result]': approx(
    'contents[user].parts.functionResponse.response.output',
    'as text',
  ),
  'messages[].content[tool_result].content[document]': near(
    'contents[user].parts.inlineData.data',
    'as images',
  ),
  'messages[].content[tool_result].content[tool_reference]': approx(
    'contents[user].parts.functionResponse.response.output',
    'as text',
  ),
  'messages[].content[tool_result].is_error (true)': exact(
    'contents[user].parts.functionResponse.response.error',
    'error instead of output',
  ),
  'messages[].content[tool_result].cache_control': ignore('the provider caches by itself'),
  'messages[].content[server_tool_use]': approx('contents[model].parts.text', 'with its result'),
  'messages[].content[web_search_tool_result]': approx(
    'contents[model].parts.text',
    'what it found, as text',
  ),
  'messages[].content[web_fetch_tool_result]': approx(
    'contents[model].parts.text',
    'what it found, as text',
  ),
  'messages[].content[advisor_tool_result]': approx(
    'contents[model].parts.text',
    'what it found, as text',
  ),
  'messages[].content[code_execution_tool_result]': approx(
    'contents[model].parts.text',
    'what it found, as text',
  ),
  'messages[].content[bash_code_execution_tool_result]': approx(
    'contents[model].parts.text',
    'what it found, as text',
  ),
  'messages[].content[text_editor_code_execution_tool_result]': approx(
    'contents[model].parts.text',
    'what it found, as text',
  ),
  'messages[].content[tool_search_tool_result]': approx(
    'contents[model].parts.text',
    'what it found, as text',
  ),
  'messages[].content[mcp_tool_use]': approx('contents[model].parts.text', 'with its result'),
  'messages[].content[mcp_tool_result]': approx(
    'contents[model].parts.text',
    'what it found, as text',
  ),
  'messages[].content[compaction]': approx('contents[model].parts.text', 'as text'),
  'messages[].content[tool_addition]': approx('contents[model].parts.text', 'as text'),
  'messages[].content[tool_removal]': approx('contents[model].parts.text', 'as text'),
  'messages[system]': approx('contents[user].parts.text', 'marked as <system>'),
  'messages[system].output_config.effort': exact(
    'generationConfig.thinkingConfig.thinkingBudget',
    'the last one set applies',
  ),
  'max_tokens (above 0)': exact('generationConfig.maxOutputTokens'),
  'system.text': exact('systemInstruction.parts.text'),
  'system.cache_control': ignore('the provider caches by itself'),
  temperature: exact('generationConfig.temperature'),
  top_p: exact('generationConfig.topP'),
  top_k: exact('generationConfig.topK'),
  'stop_sequences (up to 4)': exact('generationConfig.stopSequences'),
  'stop_sequences (above 4)': exact('', 'above 5 enforced by the gateway'),
  'tools[custom].name': exact(
    'tools.functionDeclarations.name',
    'shortened deterministically above 64 characters',
  ),
  'tools[custom].description': exact('tools.functionDeclarations.description'),
  'tools[custom].input_schema': exact('tools.functionDeclarations.parametersJsonSchema'),
  'tools[custom].strict': exact('toolConfig.functionCallingConfig.mode', 'VALIDATED'),
  'tools[custom].cache_control': ignore('the provider caches by itself'),
  'tools[custom].defer_loading (true)': approx(
    'tools.functionDeclarations.name',
    'all are offered at once',
  ),
  'tools[bash_20241022]': approx(
    'tools.functionDeclarations.name',
    'offered as an ordinary function tool',
  ),
  'tools[bash_20250124]': approx(
    'tools.functionDeclarations.name',
    'offered as an ordinary function tool',
  ),
  'tools[text_editor_20241022]': approx(
    'tools.functionDeclarations.name',
    'offered as an ordinary function tool',
  ),
  'tools[text_editor_20250124]': approx(
    'tools.functionDeclarations.name',
    'offered as an ordinary function tool',
  ),
  'tools[text_editor_20250429]': approx(
    'tools.functionDeclarations.name',
    'offered as an ordinary function tool',
  ),
  'tools[memory_20250818]': approx(
    'tools.functionDeclarations.name',
    'offered as an ordinary function tool',
  ),
  'tools[web_search_20250305] (provider or route with server_tools)': approx(
    'tools.googleSearch',
    'the web search of the provider',
  ),
  'tools[web_search_20250305] (alone)': reject('the search there needs server_tools'),
  'tools[web_search_20260209] (provider or route with server_tools)': approx(
    'tools.googleSearch',
    'the web search of the provider',
  ),
  'tools[web_search_20260209] (alone)': reject('the search there needs server_tools'),
  'tools[web_search_20260318] (provider or route with server_tools)': approx(
    'tools.googleSearch',
    'the web search of the provider',
  ),
  'tools[web_search_20260318] (alone)': reject('the search there needs server_tools'),
  'tool_choice[tool].name': exact('toolConfig.functionCallingConfig.allowedFunctionNames'),
  'tool_choice[none]': exact('toolConfig.functionCallingConfig.mode', 'NONE'),
  'thinking[enabled].budget_tokens': exact(
    'generationConfig.thinkingConfig.thinkingBudget',
    'or the nearest word where the model takes words',
  ),
  'thinking[disabled]': approx(
    'generationConfig.thinkingConfig.thinkingBudget',
    'off where the model can; else the least',
  ),
  'thinking[between_tools]': approx(
    'generationConfig.thinkingConfig.thinkingBudget',
    'off, also between calls',
  ),
  'output_config.effort': exact(
    'generationConfig.thinkingConfig.thinkingBudget',
    'its share of the cap, or the nearest word',
  ),
  'output_config.format.schema': exact('generationConfig.responseJsonSchema'),
  'output_format.schema': exact('generationConfig.responseJsonSchema'),
  'service_tier (standard_only, OpenAI)': exact('serviceTier', 'standard'),
  'service_tier (other upstreams)': exact('serviceTier', 'standard'),
  'cache_control.type': ignore('the provider caches by itself'),
  'cache_control.ttl': ignore('the provider caches by itself'),
  "inference_geo (global, or the provider's region)": exact(
    '',
    'the provider is in that region, by the config',
  ),
};

export const messagesOnConverse: Column = {
  ...both,
  'messages[].content[text].text': exact('messages[user].content.text'),
  'messages[].content[text].cache_control': exact(
    'messages[user].content.cachePoint.type',
    'a block behind it',
  ),
  'messages[].content[image].source[base64].data': exact(
    'messages[user].content.image.source.bytes',
  ),
  'messages[].content[image].source[base64].media_type': exact(
    'messages[user].content.image.format',
    'png',
  ),
  'messages[].content[image].source[url].url': reject('addresses are not read there'),
  'messages[].content[image].cache_control': exact(
    'messages[user].content.cachePoint.type',
    'a block behind it',
  ),
  'messages[].content[document].source[base64].data': exact(
    'messages[user].content.document.source.bytes',
  ),
  'messages[].content[document].source[base64].media_type': exact(
    'messages[user].content.document.format',
    'pdf',
  ),
  'messages[].content[document].source[text].data': exact(
    'messages[user].content.document.source.text',
  ),
  'messages[].content[document].source[content].content': approx(
    'messages[user].content.text',
    'a document is shown as its text and images',
  ),
  'messages[].content[document].source[url]': reject('addresses are not read there'),
  'messages[].content[document].cache_control': exact(
    'messages[user].content.cachePoint.type',
    'a block behind it',
  ),
  'messages[].content[document].citations.enabled (true)': exact(
    'messages[user].content.document.citations.enabled',
  ),
  'messages[].content[document].context (of a text)': exact(
    'messages[user].content.document.context',
  ),
  'messages[].content[document].title': near(
    'messages[user].content.document.name',
    'without its ending and what is not allowed',
  ),
  'messages[].content[search_result]': approx('messages[user].content.text', 'as text'),
  'messages[].content[thinking] (written by a model like the one behind)': exact(
    'messages[assistant].content.reasoningContent.reasoningText',
  ),
  'messages[].content[redacted_thinking] (written by a model like the one behind)': exact(
    'messages[assistant].content.reasoningContent.redactedContent',
  ),
  'messages[].content[tool_use].id': exact('messages[assistant].content.toolUse.toolUseId'),
  'messages[].content[tool_use].name': exact(
    'messages[assistant].content.toolUse.name',
    'shortened deterministically above 64 characters',
  ),
  'messages[].content[tool_use].input': exact('messages[assistant].content.toolUse.input'),
  'messages[].content[tool_use].cache_control': exact(
    'messages[assistant].content.cachePoint.type',
    'a block behind it',
  ),
  'messages[].content[tool_result].tool_use_id': exact(
    'messages[assistant].content.toolUse.toolUseId',
  ),
  'messages[].content[tool_result].content[text].text': exact(
    'messages[user].content.toolResult.content.text',
  ),
  'messages[].content[tool_result].content[text].cache_control': exact(
    'messages[user].content.cachePoint.type',
    'a block behind it',
  ),
  'messages[].content[tool_result].content[image]': exact(
    'messages[user].content.toolResult.content.image.source.bytes',
    'its bytes',
  ),
  'messages[].content[tool_result].content[search_result]': approx(
    'messages[user].content.toolResult.content.text',
    'as text',
  ),
  'messages[].content[tool_result].content[document]': exact(
    'messages[user].content.toolResult.content.document.source.bytes',
    'its bytes',
  ),
  'messages[].content[tool_result].content[tool_reference]': approx(
    'messages[user].content.toolResult.content.text',
    'as text',
  ),
  'messages[].content[tool_result].is_error (true)': exact(
    'messages[user].content.toolResult.status',
    'error',
  ),
  'messages[].content[tool_result].cache_control': exact(
    'messages[user].content.cachePoint.type',
    'a block behind it',
  ),
  'messages[].content[server_tool_use]': approx(
    'messages[assistant].content.text',
    'with its result',
  ),
  'messages[].content[web_search_tool_result]': approx(
    'messages[assistant].content.text',
    'what it found, as text',
  ),
  'messages[].content[web_fetch_tool_result]': approx(
    'messages[assistant].content.text',
    'what it found, as text',
  ),
  'messages[].content[advisor_tool_result]': approx(
    'messages[assistant].content.text',
    'what it found, as text',
  ),
  'messages[].content[code_execution_tool_result]': approx(
    'messages[assistant].content.text',
    'what it found, as text',
  ),
  'messages[].content[bash_code_execution_tool_result]': approx(
    'messages[assistant].content.text',
    'what it found, as text',
  ),
  'messages[].content[text_editor_code_execution_tool_result]': approx(
    'messages[assistant].content.text',
    'what it found, as text',
  ),
  'messages[].content[tool_search_tool_result]': approx(
    'messages[assistant].content.text',
    'what it found, as text',
  ),
  'messages[].content[mcp_tool_use]': approx('messages[assistant].content.text', 'with its result'),
  'messages[].content[mcp_tool_result]': approx(
    'messages[assistant].content.text',
    'what it found, as text',
  ),
  'messages[].content[compaction]': approx('messages[assistant].content.text', 'as text'),
  'messages[].content[tool_addition]': approx('messages[assistant].content.text', 'as text'),
  'messages[].content[tool_removal]': approx('messages[assistant].content.text', 'as text'),
  'messages[system]': approx('messages[user].content.text', 'marked as <system>'),
  'messages[system].output_config.effort': exact('outputConfig.effort', 'the last one set applies'),
  'max_tokens (above 0)': exact('inferenceConfig.maxTokens'),
  'system.text': exact('system.text'),
  'system.cache_control': exact('system.cachePoint.type', 'a block behind it'),
  'temperature (tunable model)': exact('inferenceConfig.temperature'),
  'temperature (untunable model)': warn('the model refuses sampling parameters'),
  'top_p (tunable model)': exact('inferenceConfig.topP'),
  'top_p (untunable model)': warn('the model refuses sampling parameters'),
  'top_k (upstream that knows it)': exact('additionalModelRequestFields.top_k'),
  'top_k (upstream that does not)': warn('the model refuses sampling parameters'),
  'stop_sequences (up to 4)': exact('inferenceConfig.stopSequences'),
  'stop_sequences (above 4)': exact('', 'the gateway enforces what the model does not take'),
  'tools[custom].name': exact(
    'toolConfig.tools.toolSpec.name',
    'shortened deterministically above 64 characters',
  ),
  'tools[custom].description': exact('toolConfig.tools.toolSpec.description'),
  'tools[custom].input_schema': exact('toolConfig.tools.toolSpec.inputSchema.json'),
  'tools[custom].strict': exact('toolConfig.tools.toolSpec.strict'),
  'tools[custom].cache_control': exact('toolConfig.tools.cachePoint.type', 'a block behind it'),
  'tools[custom].defer_loading (true)': approx(
    'toolConfig.tools.toolSpec.name',
    'all are offered at once',
  ),
  'tools[bash_20241022]': approx(
    'toolConfig.tools.toolSpec.name',
    'offered as an ordinary function tool',
  ),
  'tools[bash_20250124]': approx(
    'toolConfig.tools.toolSpec.name',
    'offered as an ordinary function tool',
  ),
  'tools[text_editor_20241022]': approx(
    'toolConfig.tools.toolSpec.name',
    'offered as an ordinary function tool',
  ),
  'tools[text_editor_20250124]': approx(
    'toolConfig.tools.toolSpec.name',
    'offered as an ordinary function tool',
  ),
  'tools[text_editor_20250429]': approx(
    'toolConfig.tools.toolSpec.name',
    'offered as an ordinary function tool',
  ),
  'tools[memory_20250818]': approx(
    'toolConfig.tools.toolSpec.name',
    'offered as an ordinary function tool',
  ),
  'tools[web_search_20250305] (provider or route with server_tools)': reject(
    'the model has no web search',
  ),
  'tools[web_search_20250305] (alone)': reject('the model has no web search'),
  'tools[web_search_20260209] (provider or route with server_tools)': reject(
    'the model has no web search',
  ),
  'tools[web_search_20260209] (alone)': reject('the model has no web search'),
  'tools[web_search_20260318] (provider or route with server_tools)': reject(
    'the model has no web search',
  ),
  'tools[web_search_20260318] (alone)': reject('the model has no web search'),
  'tool_choice[tool].name': exact('toolConfig.toolChoice.tool.name'),
  'tool_choice[none]': near('', 'no tools are offered; noted where earlier calls need them'),
  'thinking[enabled].budget_tokens': exact('additionalModelRequestFields.thinking.budget_tokens'),
  'thinking[disabled]': exact('', 'the model thinks only when it is asked to'),
  'thinking[between_tools]': approx('', 'off, also between calls'),
  'output_config.effort': exact(
    'outputConfig.effort',
    'lowered to the nearest that the model knows',
  ),
  'output_config.format.schema (every property is required)': exact(
    'outputConfig.textFormat.structure.jsonSchema.schema',
    'as text',
  ),
  'output_config.format.schema (some are optional)': exact(
    'outputConfig.textFormat.structure.jsonSchema.schema',
    'as text',
  ),
  'output_config.format.schema (upstream that enforces none)': approx(
    'toolConfig.tools.toolSpec.inputSchema.json',
    'the input of a tool that must be called',
  ),
  'output_format.schema (every property is required)': exact(
    'outputConfig.textFormat.structure.jsonSchema.schema',
    'as text',
  ),
  'output_format.schema (some are optional)': exact(
    'outputConfig.textFormat.structure.jsonSchema.schema',
    'as text',
  ),
  'output_format.schema (upstream that enforces none)': approx(
    'toolConfig.tools.toolSpec.inputSchema.json',
    'the input of a tool that must be called',
  ),
  'service_tier (standard_only, OpenAI)': exact('serviceTier.type', 'default'),
  'service_tier (other upstreams)': exact('serviceTier.type', 'default'),
  'cache_control.type': exact(
    'messages[user].content.cachePoint.type',
    'at the end of the conversation',
  ),
  'cache_control.ttl': exact('messages[user].content.cachePoint.ttl'),
  "inference_geo (global, or the provider's region)": reject("regions there have Amazon's names"),
};
