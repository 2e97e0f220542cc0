/** What Gemini and Converse upstreams get of each row of chat requests. */
import { approx, exact, ignore, near, reject, warn, type Column } from '../decision.ts';

/** What is decided alike at both. */
const both: Column = {
  model: exact('', 'the address names it'),
  'messages[developer].content.text (white space only)': ignore('blank texts say nothing'),
  'messages[developer].name': warn('instructions have no author here'),
  'messages[system].content.text (white space only)': ignore('blank texts say nothing'),
  'messages[system].name': warn('instructions have no author here'),
  'messages[user].content[text].text (white space only)': ignore('blank texts say nothing'),
  'messages[user].content[image_url].image_url.url (data URL of another type)': reject(),
  'messages[user].content[file].file.file_data (other types)': reject(),
  'messages[user].content[file].file.file_id': reject("ids belong to one provider's file store"),
  'messages[assistant].audio': reject('no audio there'),
  'n (1)': ignore('the default'),
  'n (above 1)': reject('one answer only'),
  'stop (an empty text)': reject(),
  stream: exact('', 'the address names it'),
  'stream_options.include_usage': exact('', 'the gateway sends the usage chunk'),
  'stream_options.include_obfuscation': ignore('the gateway pads nothing'),
  'tools[function].function.parameters (schema of something else)': reject(),
  'tools[custom].custom.format[text]': ignore('the default'),
  'tools[custom].custom.format[grammar]': reject('the constraint would be lost'),
  'parallel_tool_calls (true)': ignore('the default'),
  'parallel_tool_calls (false)': approx('', 'only the first call is kept'),
  'response_format[text]': ignore('the default'),
  'response_format[json_schema].json_schema.schema (absent)': reject(),
  'reasoning_effort (model that does not think)': warn('the model does not think'),
  'verbosity (medium)': ignore('the default'),
  'verbosity (low, high)': warn('not known to the model'),
  'logprobs (false)': ignore('the default'),
  'logprobs (true)': reject('not reported by the gateway'),
  'top_logprobs (0)': ignore('the default'),
  'top_logprobs (above 0)': reject('not reported by the gateway'),
  'logit_bias (empty)': ignore(),
  'logit_bias (some bias)': warn('not known to the model'),
  'frequency_penalty (0)': ignore('the default'),
  'presence_penalty (0)': ignore('the default'),
  prediction: ignore('a hint about speed'),
  'modalities (text only)': ignore('the default'),
  'modalities (with audio)': reject('no audio there'),
  'audio (without the audio modality)': ignore(),
  'audio (with it)': reject('no audio there'),
  user: warn('no id of the end user there'),
  safety_identifier: warn('no id of the end user there'),
  metadata: warn('not known to the model'),
  'store (false)': ignore('the default'),
  'store (true)': warn('not known to the model'),
  prompt_cache_key: ignore('a hint about caching'),
  prompt_cache_options: ignore('marks are kept; nothing is marked that the client did not mark'),
  'prompt_cache_retention (in_memory)': ignore('the default'),
  'service_tier (auto)': exact('', 'the default there as well'),
  'service_tier (fast)': warn('the provider has no such tier'),
  'service_tier (fast, provider with a fast-mode beta)': warn('the provider has no such tier'),
  'moderation (with the mode block)': reject('the upstream could not keep this promise'),
  'moderation (without it)': warn('not known to the model'),
  'reasoning.exclude': exact('', 'the reasoning is left out of the answer'),
  'any other field': warn('passed on to chat upstreams only'),
  'messages[assistant].reasoning_content': ignore('unsigned reasoning is refused there'),
};

export const chatOnGemini: Column = {
  ...both,
  'messages[developer] (before the first turn)': exact(
    'systemInstruction.parts.text',
    'one part for each part',
  ),
  'messages[developer] (later on, a model that takes it)': approx(
    'contents[user].parts.text',
    'marked as <system>',
  ),
  'messages[developer] (later on, other models)': approx(
    'contents[user].parts.text',
    'marked as <system>',
  ),
  'messages[developer] (nothing but instructions)': approx(
    'contents[user].parts.text',
    'the last one becomes the question',
  ),
  'messages[developer].content.text (some text)': exact('systemInstruction.parts.text'),
  'messages[developer].content.prompt_cache_breakpoint': ignore('the provider caches by itself'),
  'messages[system] (before the first turn)': exact(
    'systemInstruction.parts.text',
    'one part for each part',
  ),
  'messages[system] (later on, a model that takes it)': approx(
    'contents[user].parts.text',
    'marked as <system>',
  ),
  'messages[system] (later on, other models)': approx(
    'contents[user].parts.text',
    'marked as <system>',
  ),
  'messages[system] (nothing but instructions)': approx(
    'contents[user].parts.text',
    'the last one becomes the question',
  ),
  'messages[system].content.text (some text)': exact('systemInstruction.parts.text'),
  'messages[system].content.prompt_cache_breakpoint': ignore('the provider caches by itself'),
  'messages[user].content[text].text (some text)': exact('contents[user].parts.text'),
  'messages[user].content[text].prompt_cache_breakpoint': ignore('the provider caches by itself'),
  'messages[user].content[image_url].image_url.url (data URL of a JPEG, PNG, GIF or WebP)': exact(
    'contents[user].parts.inlineData.data',
    'its bytes',
  ),
  'messages[user].content[image_url].image_url.url (data URL under the name of another format)':
    approx('contents[user].parts.inlineData.data', 'with the media type of its bytes'),
  'messages[user].content[image_url].image_url.url (data URL of a PDF)': near(
    'contents[user].parts.inlineData.data',
    'a document, as its data says',
  ),
  'messages[user].content[image_url].image_url.url (http or https)': exact(
    'contents[user].parts.fileData.fileUri',
  ),
  'messages[user].content[image_url].image_url.detail': near(
    'generationConfig.mediaResolution',
    'one for all media, noted where it is not what an image asks for',
  ),
  'messages[user].content[image_url].prompt_cache_breakpoint': ignore(
    'the provider caches by itself',
  ),
  'messages[user].content[input_audio]': exact('contents[user].parts.inlineData.data', 'its bytes'),
  'messages[user].content[file].file.file_data (PDF)': exact(
    'contents[user].parts.inlineData.data',
    'its bytes',
  ),
  'messages[user].content[file].file.file_data (text)': near(
    'contents[user].parts.text',
    'below its name',
  ),
  'messages[user].content[file].file.file_data (address of a PDF)': exact(
    'contents[user].parts.fileData.fileUri',
  ),
  'messages[user].content[file].file.filename': warn('data there has no name'),
  'messages[user].content[file].prompt_cache_breakpoint': ignore('the provider caches by itself'),
  'messages[user].name': warn('contents have no author'),
  'messages[assistant].content[text].text': exact('contents[model].parts.text'),
  'messages[assistant].content[text].prompt_cache_breakpoint': ignore(
    'the provider caches by itself',
  ),
  'messages[assistant].content[refusal].refusal': exact('contents[model].parts.text'),
  'messages[assistant].refusal': exact('contents[model].parts.text'),
  'messages[assistant].function_call.name': exact('contents[model].parts.functionCall.name'),
  'messages[assistant].function_call.arguments': exact(
    'contents[model].parts.functionCall.args',
    'an object',
  ),
  'messages[assistant].name': warn('contents have no author'),
  'messages[assistant].tool_calls[function].id': exact(
    'contents[model].parts.functionCall.id',
    'where the model pairs by it; replaced if it has other characters',
  ),
  'messages[assistant].tool_calls[function].function.name': exact(
    'contents[model].parts.functionCall.name',
  ),
  'messages[assistant].tool_calls[function].function.arguments (a JSON object)': exact(
    'contents[model].parts.functionCall.args',
    'an object',
  ),
  'messages[assistant].tool_calls[function].function.arguments (blank)': exact(
    'contents[model].parts.functionCall.args',
    '{}',
  ),
  'messages[assistant].tool_calls[function].function.arguments (another JSON value)': approx(
    'contents[model].parts.functionCall.args.value',
    'wrapped as {"value": …}',
  ),
  'messages[assistant].tool_calls[function].function.arguments (no JSON)': approx(
    'contents[model].parts.functionCall.args._raw',
    'wrapped as {"_raw": …}',
  ),
  'messages[assistant].tool_calls[custom].id': exact('contents[model].parts.functionCall.id'),
  'messages[assistant].tool_calls[custom].custom.name': exact(
    'contents[model].parts.functionCall.name',
  ),
  'messages[assistant].tool_calls[custom].custom.input': exact(
    'contents[model].parts.functionCall.args.input',
  ),
  'messages[tool].content.text': exact('contents[user].parts.functionResponse.response.output'),
  'messages[tool].content.prompt_cache_breakpoint': ignore('the provider caches by itself'),
  'messages[tool].tool_call_id': exact('contents[user].parts.functionResponse.id'),
  'messages[function].content': exact('contents[user].parts.functionResponse.response.output'),
  'messages[function].name': exact('contents[model].parts.functionCall.name', 'the call before it'),
  max_completion_tokens: exact('generationConfig.maxOutputTokens'),
  max_tokens: exact('generationConfig.maxOutputTokens', 'the old spelling'),
  temperature: exact('generationConfig.temperature'),
  top_p: exact('generationConfig.topP'),
  'stop (text)': exact('generationConfig.stopSequences'),
  'stop (list)': exact('generationConfig.stopSequences'),
  'stop (white space only)': exact('generationConfig.stopSequences'),
  'tools[function].function.name': exact('tools.functionDeclarations.name'),
  'tools[function].function.description': exact('tools.functionDeclarations.description'),
  'tools[function].function.parameters (schema of an object)': exact(
    'tools.functionDeclarations.parametersJsonSchema',
    'every keyword is kept',
  ),
  'tools[function].function.parameters (absent)': exact(
    'tools.functionDeclarations.parametersJsonSchema',
    'an object without properties',
  ),
  'tools[function].function.strict': exact('toolConfig.functionCallingConfig.mode', 'VALIDATED'),
  'tools[custom].custom.name': exact('tools.functionDeclarations.name'),
  'tools[custom].custom.description': exact('tools.functionDeclarations.description'),
  'tool_choice (auto)': exact('toolConfig.functionCallingConfig.mode', 'AUTO'),
  'tool_choice (none)': exact('toolConfig.functionCallingConfig.mode', 'NONE'),
  'tool_choice (required)': exact('toolConfig.functionCallingConfig.mode', 'ANY'),
  'tool_choice[function].function.name': exact(
    'toolConfig.functionCallingConfig.allowedFunctionNames',
  ),
  'tool_choice[custom].custom.name': exact('toolConfig.functionCallingConfig.allowedFunctionNames'),
  'tool_choice[allowed_tools].allowed_tools.mode (auto)': exact(
    'toolConfig.functionCallingConfig.mode',
    'VALIDATED',
  ),
  'tool_choice[allowed_tools].allowed_tools.mode (required)': exact(
    'toolConfig.functionCallingConfig.mode',
    'ANY',
  ),
  'tool_choice[allowed_tools].allowed_tools.tools': exact(
    'toolConfig.functionCallingConfig.allowedFunctionNames',
  ),
  'functions.name': exact('tools.functionDeclarations.name'),
  'functions.description': exact('tools.functionDeclarations.description'),
  'functions.parameters': exact('tools.functionDeclarations.parametersJsonSchema'),
  'function_call (auto)': exact('toolConfig.functionCallingConfig.mode', 'AUTO'),
  'function_call (none)': exact('toolConfig.functionCallingConfig.mode', 'NONE'),
  'function_call.name': exact('toolConfig.functionCallingConfig.allowedFunctionNames'),
  'response_format[json_schema].json_schema.name': ignore('has no meaning there'),
  'response_format[json_schema].json_schema.description': ignore('has no meaning there'),
  'response_format[json_schema].json_schema.schema (keywords that the model enforces)': exact(
    'generationConfig.responseJsonSchema',
  ),
  'response_format[json_schema].json_schema.schema (other keywords)': near(
    'generationConfig.responseJsonSchema',
    'kept; the model may overlook them',
  ),
  'response_format[json_schema].json_schema.schema (model that enforces none)': exact(
    'generationConfig.responseJsonSchema',
  ),
  'response_format[json_schema].json_schema.strict (true)': exact(
    'generationConfig.responseJsonSchema',
    'enforced',
  ),
  'response_format[json_schema].json_schema.strict (false)': near(
    'generationConfig.responseJsonSchema',
    'enforced nevertheless',
  ),
  'response_format[json_object]': exact('generationConfig.responseMimeType'),
  'reasoning_effort (none)': approx(
    'generationConfig.thinkingConfig.thinkingBudget',
    'off where the model can; else the least',
  ),
  'reasoning_effort (minimal)': near(
    'generationConfig.thinkingConfig.thinkingBudget',
    '1024 tokens',
  ),
  'reasoning_effort (low)': exact(
    'generationConfig.thinkingConfig.thinkingBudget',
    '10 % of the cap, or the word where the model takes words',
  ),
  'reasoning_effort (medium)': exact(
    'generationConfig.thinkingConfig.thinkingBudget',
    '30 % of the cap, or the word where the model takes words',
  ),
  'reasoning_effort (high)': exact(
    'generationConfig.thinkingConfig.thinkingBudget',
    '60 % of the cap, or the word where the model takes words',
  ),
  'reasoning_effort (xhigh)': exact(
    'generationConfig.thinkingConfig.thinkingBudget',
    '80 % of the cap, or the word where the model takes words',
  ),
  'reasoning_effort (max)': exact(
    'generationConfig.thinkingConfig.thinkingBudget',
    '90 % of the cap, or the word where the model takes words',
  ),
  'frequency_penalty (other values)': exact('generationConfig.frequencyPenalty'),
  'presence_penalty (other values)': exact('generationConfig.presencePenalty'),
  seed: exact('generationConfig.seed'),
  'prompt_cache_retention (24h)': ignore('the provider caches by itself'),
  'service_tier (default)': exact('serviceTier', 'standard'),
  'service_tier (priority)': exact('serviceTier'),
  'service_tier (flex, scale)': exact('serviceTier'),
  'web_search_options (provider or route with server_tools)': near(
    'tools.googleSearch',
    'the web search of the provider',
  ),
  'web_search_options (others)': reject('the search there needs server_tools'),
  'web_search_options.search_context_size (medium)': ignore('the default'),
  'web_search_options.search_context_size (low, high)': warn('that search has no such option'),
  'web_search_options.user_location': warn('that search has no such option'),
  top_k: exact('generationConfig.topK'),
  'thinking[enabled].budget_tokens': exact('generationConfig.thinkingConfig.thinkingBudget'),
  'thinking[adaptive]': exact('generationConfig.thinkingConfig.thinkingBudget', '-1'),
  'thinking[disabled]': approx(
    'generationConfig.thinkingConfig.thinkingBudget',
    'off where the model can; else the least',
  ),
  'reasoning.effort': exact(
    'generationConfig.thinkingConfig.thinkingBudget',
    'as reasoning_effort',
  ),
  'reasoning.max_tokens': exact('generationConfig.thinkingConfig.thinkingBudget'),
  'reasoning.enabled': exact('generationConfig.thinkingConfig.includeThoughts'),
  cache_control: ignore('the provider caches by itself'),
  'messages[user].content[text].cache_control': ignore('the provider caches by itself'),
  'messages[user].cache_control': ignore('the provider caches by itself'),
  'messages[tool].cache_control': ignore('the provider caches by itself'),
  'tools[function].cache_control': ignore('the provider caches by itself'),
  'messages[tool].content[image_url]': near(
    'contents[user].parts.inlineData.data',
    'in the next content, where older models take none in a result',
  ),
  'messages[assistant].reasoning_details': warn('written by another model; its own: EXACT'),
  'messages[assistant].thinking_blocks': warn('written by another model'),
};

export const chatOnConverse: Column = {
  ...both,
  'messages[developer] (before the first turn)': exact('system.text', 'one part for each part'),
  'messages[developer] (later on, a model that takes it)': approx(
    'messages[user].content.text',
    'marked as <system>',
  ),
  'messages[developer] (later on, other models)': approx(
    'messages[user].content.text',
    'marked as <system>',
  ),
  'messages[developer] (nothing but instructions)': approx(
    'messages[user].content.text',
    'the last one becomes the question',
  ),
  'messages[developer].content.text (some text)': exact('system.text'),
  'messages[developer].content.prompt_cache_breakpoint': near(
    'system.cachePoint.type',
    'a block behind it, kept for 5 minutes or an hour',
  ),
  'messages[system] (before the first turn)': exact('system.text', 'one part for each part'),
  'messages[system] (later on, a model that takes it)': approx(
    'messages[user].content.text',
    'marked as <system>',
  ),
  'messages[system] (later on, other models)': approx(
    'messages[user].content.text',
    'marked as <system>',
  ),
  'messages[system] (nothing but instructions)': approx(
    'messages[user].content.text',
    'the last one becomes the question',
  ),
  'messages[system].content.text (some text)': exact('system.text'),
  'messages[system].content.prompt_cache_breakpoint': near(
    'system.cachePoint.type',
    'a block behind it, kept for 5 minutes or an hour',
  ),
  'messages[user].content[text].text (some text)': exact('messages[user].content.text'),
  'messages[user].content[text].prompt_cache_breakpoint': near(
    'messages[user].content.cachePoint.type',
    'a block behind it, kept for 5 minutes or an hour',
  ),
  'messages[user].content[image_url].image_url.url (data URL of a JPEG, PNG, GIF or WebP)': exact(
    'messages[user].content.image.source.bytes',
    'its bytes',
  ),
  'messages[user].content[image_url].image_url.url (data URL under the name of another format)':
    approx('messages[user].content.image.source.bytes', 'with the format of its bytes'),
  'messages[user].content[image_url].image_url.url (data URL of a PDF)': near(
    'messages[user].content.document.source.bytes',
    'a document, as its data says',
  ),
  'messages[user].content[image_url].image_url.url (http or https)': reject(
    'addresses are not read there',
  ),
  'messages[user].content[image_url].image_url.detail': ignore('no such option there'),
  'messages[user].content[image_url].prompt_cache_breakpoint': near(
    'messages[user].content.cachePoint.type',
    'a block behind it, kept for 5 minutes or an hour',
  ),
  'messages[user].content[input_audio]': exact(
    'messages[user].content.audio.source.bytes',
    'its bytes',
  ),
  'messages[user].content[file].file.file_data (PDF)': exact(
    'messages[user].content.document.source.bytes',
    'its bytes',
  ),
  'messages[user].content[file].file.file_data (text)': exact(
    'messages[user].content.document.source.text',
    'its text',
  ),
  'messages[user].content[file].file.file_data (address of a PDF)': reject(
    'addresses are not read there',
  ),
  'messages[user].content[file].file.filename': near(
    'messages[user].content.document.name',
    'without its ending and what is not allowed',
  ),
  'messages[user].content[file].prompt_cache_breakpoint': near(
    'messages[user].content.cachePoint.type',
    'a block behind it, kept for 5 minutes or an hour',
  ),
  'messages[user].name': warn('messages have no name of their author'),
  'messages[assistant].content[text].text (some text)': exact('messages[assistant].content.text'),
  'messages[assistant].content[text].text (white space only)': ignore('blank texts say nothing'),
  'messages[assistant].content[text].prompt_cache_breakpoint': near(
    'messages[assistant].content.cachePoint.type',
    'a block behind it, kept for 5 minutes or an hour',
  ),
  'messages[assistant].content[refusal].refusal': exact('messages[assistant].content.text'),
  'messages[assistant].refusal': exact('messages[assistant].content.text'),
  'messages[assistant].function_call.name': exact('messages[assistant].content.toolUse.name'),
  'messages[assistant].function_call.arguments': exact(
    'messages[assistant].content.toolUse.input',
    'an object',
  ),
  'messages[assistant].name': warn('messages have no name of their author'),
  'messages[assistant].tool_calls[function].id': exact(
    'messages[assistant].content.toolUse.toolUseId',
    'where the model pairs by it; replaced if it has other characters',
  ),
  'messages[assistant].tool_calls[function].function.name': exact(
    'messages[assistant].content.toolUse.name',
  ),
  'messages[assistant].tool_calls[function].function.arguments (a JSON object)': exact(
    'messages[assistant].content.toolUse.input',
    'an object',
  ),
  'messages[assistant].tool_calls[function].function.arguments (blank)': exact(
    'messages[assistant].content.toolUse.input',
    '{}',
  ),
  'messages[assistant].tool_calls[function].function.arguments (another JSON value)': approx(
    'messages[assistant].content.toolUse.input.value',
    'wrapped as {"value": …}',
  ),
  'messages[assistant].tool_calls[function].function.arguments (no JSON)': approx(
    'messages[assistant].content.toolUse.input._raw',
    'wrapped as {"_raw": …}',
  ),
  'messages[assistant].tool_calls[custom].id': exact(
    'messages[assistant].content.toolUse.toolUseId',
  ),
  'messages[assistant].tool_calls[custom].custom.name': exact(
    'messages[assistant].content.toolUse.name',
  ),
  'messages[assistant].tool_calls[custom].custom.input': exact(
    'messages[assistant].content.toolUse.input.input',
  ),
  'messages[tool].content.text (some text)': exact(
    'messages[user].content.toolResult.content.text',
  ),
  'messages[tool].content.text (white space only)': ignore('blank texts say nothing'),
  'messages[tool].content.prompt_cache_breakpoint': near(
    'messages[user].content.cachePoint.type',
    'a block behind it, kept for 5 minutes or an hour',
  ),
  'messages[tool].tool_call_id': exact('messages[user].content.toolResult.toolUseId'),
  'messages[function].content': exact('messages[user].content.toolResult.content.text'),
  'messages[function].name': exact(
    'messages[assistant].content.toolUse.name',
    'the call before it',
  ),
  'max_completion_tokens (from 16)': exact(
    'inferenceConfig.maxTokens',
    "absent: the model's own limit, at most 32768; else 8192",
  ),
  'max_completion_tokens (below 16)': exact('inferenceConfig.maxTokens'),
  max_tokens: exact('inferenceConfig.maxTokens', 'the old spelling'),
  'temperature (0 to 1)': exact('inferenceConfig.temperature'),
  'temperature (above 1)': approx('inferenceConfig.temperature', 'at most 1 there'),
  'temperature (untunable model)': warn('the model refuses sampling parameters'),
  'top_p (tunable model)': exact('inferenceConfig.topP'),
  'top_p (untunable model)': warn('the model refuses sampling parameters'),
  'stop (text)': exact('inferenceConfig.stopSequences'),
  'stop (list)': exact('inferenceConfig.stopSequences'),
  'stop (white space only)': exact('', 'enforced by the gateway'),
  'tools[function].function.name': exact('toolConfig.tools.toolSpec.name'),
  'tools[function].function.description': exact('toolConfig.tools.toolSpec.description'),
  'tools[function].function.parameters (schema of an object)': exact(
    'toolConfig.tools.toolSpec.inputSchema.json',
    'every keyword is kept',
  ),
  'tools[function].function.parameters (absent)': exact(
    'toolConfig.tools.toolSpec.inputSchema.json',
    'an object without properties',
  ),
  'tools[function].function.strict': exact('toolConfig.tools.toolSpec.strict'),
  'tools[custom].custom.name': exact('toolConfig.tools.toolSpec.name'),
  'tools[custom].custom.description': exact('toolConfig.tools.toolSpec.description'),
  'tool_choice (auto)': exact('toolConfig.toolChoice.auto', 'auto'),
  'tool_choice (none)': near('', 'no tools are offered; noted where earlier calls need them'),
  'tool_choice (required)': exact('toolConfig.toolChoice.any', 'any'),
  'tool_choice[function].function.name': exact('toolConfig.toolChoice.tool.name'),
  'tool_choice[custom].custom.name': exact('toolConfig.toolChoice.tool.name'),
  'tool_choice[allowed_tools].allowed_tools.mode (auto)': approx(
    'toolConfig.toolChoice.auto',
    'only the allowed tools are offered',
  ),
  'tool_choice[allowed_tools].allowed_tools.mode (required)': approx(
    'toolConfig.toolChoice.any',
    'only the allowed tools are offered',
  ),
  'tool_choice[allowed_tools].allowed_tools.tools': approx(
    'toolConfig.tools.toolSpec.name',
    'only the allowed tools are offered',
  ),
  'functions.name': exact('toolConfig.tools.toolSpec.name'),
  'functions.description': exact('toolConfig.tools.toolSpec.description'),
  'functions.parameters': exact('toolConfig.tools.toolSpec.inputSchema.json'),
  'function_call (auto)': exact('toolConfig.toolChoice.auto', 'auto'),
  'function_call (none)': near('', 'no tools are offered'),
  'function_call.name': exact('toolConfig.toolChoice.tool.name'),
  'response_format[json_schema].json_schema.name': exact(
    'outputConfig.textFormat.structure.jsonSchema.name',
  ),
  'response_format[json_schema].json_schema.description': exact(
    'outputConfig.textFormat.structure.jsonSchema.description',
  ),
  'response_format[json_schema].json_schema.schema (keywords that the model enforces)': exact(
    'outputConfig.textFormat.structure.jsonSchema.schema',
    'as text',
  ),
  'response_format[json_schema].json_schema.schema (other keywords)': approx(
    'outputConfig.textFormat.structure.jsonSchema.schema',
    'moved into the description, where the model reads them',
  ),
  'response_format[json_schema].json_schema.schema (model that enforces none)': approx(
    'toolConfig.tools.toolSpec.inputSchema.json',
    'the input of a tool that must be called',
  ),
  'response_format[json_schema].json_schema.strict (true)': exact(
    'outputConfig.textFormat.structure.jsonSchema.schema',
    'enforced',
  ),
  'response_format[json_schema].json_schema.strict (false)': near(
    'outputConfig.textFormat.structure.jsonSchema.schema',
    'enforced nevertheless',
  ),
  'response_format[json_object]': approx('system.text', 'asked for, not enforced'),
  'reasoning_effort (none)': exact('', 'the model thinks only when it is asked to'),
  'reasoning_effort (minimal)': near(
    'additionalModelRequestFields.thinking.budget_tokens',
    '1024 tokens',
  ),
  'reasoning_effort (low)': exact(
    'additionalModelRequestFields.thinking.budget_tokens',
    '10 % of the cap, or the word where the model takes words',
  ),
  'reasoning_effort (medium)': exact(
    'additionalModelRequestFields.thinking.budget_tokens',
    '30 % of the cap, or the word where the model takes words',
  ),
  'reasoning_effort (high)': exact(
    'additionalModelRequestFields.thinking.budget_tokens',
    '60 % of the cap, or the word where the model takes words',
  ),
  'reasoning_effort (xhigh)': exact(
    'additionalModelRequestFields.thinking.budget_tokens',
    '80 % of the cap, or the word where the model takes words',
  ),
  'reasoning_effort (max)': exact(
    'additionalModelRequestFields.thinking.budget_tokens',
    '90 % of the cap, or the word where the model takes words',
  ),
  'frequency_penalty (other values)': warn('no such field there'),
  'presence_penalty (other values)': warn('no such field there'),
  seed: warn('the model takes no seed'),
  'prompt_cache_retention (24h)': near(
    'messages[user].content.cachePoint.ttl',
    '1h on existing marks',
  ),
  'service_tier (default)': exact('serviceTier.type'),
  'service_tier (priority)': exact('serviceTier.type'),
  'service_tier (flex, scale)': exact('serviceTier.type'),
  'web_*': reject('the model has no web search'),
  'top_k (tunable model)': exact('additionalModelRequestFields.top_k'),
  'top_k (untunable model)': warn('the model refuses sampling parameters'),
  'thinking[enabled].budget_tokens': exact('additionalModelRequestFields.thinking.budget_tokens'),
  'thinking[adaptive]': exact('additionalModelRequestFields.thinking.type'),
  'thinking[disabled]': exact('', 'the model thinks only when it is asked to'),
  'reasoning.effort': exact(
    'additionalModelRequestFields.thinking.budget_tokens',
    'as reasoning_effort',
  ),
  'reasoning.max_tokens': exact('additionalModelRequestFields.thinking.budget_tokens'),
  'reasoning.enabled': near(
    'additionalModelRequestFields.thinking.budget_tokens',
    '30 % of the cap',
  ),
  cache_control: exact('messages[user].content.cachePoint.type', 'a block behind it'),
  'messages[user].content[text].cache_control': exact(
    'messages[user].content.cachePoint.type',
    'a block behind it',
  ),
  'messages[user].cache_control': exact(
    'messages[user].content.cachePoint.type',
    'a block behind it',
  ),
  'messages[tool].cache_control': exact(
    'messages[user].content.cachePoint.type',
    'a block behind it',
  ),
  'tools[function].cache_control': exact('toolConfig.tools.cachePoint.type', 'a block behind it'),
  'messages[tool].content[image_url]': exact(
    'messages[user].content.toolResult.content.image.source.bytes',
    'its bytes',
  ),
  'messages[assistant].reasoning_details': exact(
    'messages[assistant].content.reasoningContent.reasoningText.text',
    "Claude's, which carry a signature",
  ),
  'messages[assistant].thinking_blocks': exact(
    'messages[assistant].content.reasoningContent.reasoningText.text',
    "Claude's, which carry a signature",
  ),
};
