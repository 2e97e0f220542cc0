/** Libraries: code to paste. */
import type { Client } from './client.ts';
import { claudeCodeNotes, provider } from './entries.ts';
import {
  anthropicClientCode,
  baseUrl,
  chatCurl,
  claudeCodeVariables,
  keyCode,
  messagesCurl,
  openaiClientCode,
  pythonKey,
  quoted,
  type Connection,
} from '../connection.ts';

export const claudeAgentSdk: Client = {
  name: 'claude-agent-sdk',
  title: 'Claude Agent SDK',
  calls: 'messages',
  longPrompts: true,
  ownModels: true,
  variables: ({ connection, modelGiven }) => claudeCodeVariables(connection, modelGiven),
  lines: () => `// TypeScript: it starts Claude Code, which reads the variables
${imported('{ query }', '@anthropic-ai/claude-agent-sdk')}
for await (const message of query({ prompt: 'Say hello.' })) console.log(message);

# Python
from claude_agent_sdk import query
async for message in query(prompt='Say hello.'): print(message)
`,
  notes: claudeCodeNotes,
};

export const openaiSdk: Client = {
  name: 'openai-sdk',
  title: 'OpenAI SDK (TypeScript, Python)',
  calls: 'chat, responses',
  variables: ({ connection }) => [
    ['OPENAI_BASE_URL', baseUrl(connection)],
    ['OPENAI_API_KEY', connection.key],
  ],
  lines: ({ connection }) => {
    const model = quoted(connection.model);
    return `# both SDKs read these variables, and need nothing in the code then

// TypeScript: responses
${typescriptClient(connection)}
const answer = await client.responses.create({ model: ${model}, input: 'Say hello.' });
console.log(answer.output_text);

// TypeScript: chat completions
${chatTypescript(connection)}
# Python: responses
${pythonClient(connection)}
answer = client.responses.create(model=${model}, input='Say hello.')
print(answer.output_text)

# Python: chat completions
${chatPython(connection)}`;
  },
};

function typescriptClient(connection: Connection): string {
  return `${imported('OpenAI', 'openai')}
const client = ${openaiClientCode(connection)};`;
}

function pythonClient(connection: Connection): string {
  return `import os
from openai import OpenAI
client = OpenAI(base_url=${quoted(baseUrl(connection))}, api_key=${pythonKey(connection)})`;
}

/** A call of chat completions with the official SDK. */
export function chatTypescript(connection: Connection): string {
  return `${typescriptClient(connection)}
const answer = await client.chat.completions.create({
  model: ${quoted(connection.model)},
  messages: [{ role: 'user', content: 'Say hello.' }],
});
console.log(answer.choices[0].message.content);
`;
}

/** The same in Python. */
export function chatPython(connection: Connection): string {
  return `${pythonClient(connection)}
answer = client.chat.completions.create(
    model=${quoted(connection.model)},
    messages=[{'role': 'user', 'content': 'Say hello.'}],
)
print(answer.choices[0].message.content)
`;
}

export const anthropicSdk: Client = {
  name: 'anthropic-sdk',
  title: 'Anthropic SDK (TypeScript, Python)',
  calls: 'messages',
  variables: ({ connection }) => [
    ['ANTHROPIC_BASE_URL', connection.url],
    ['ANTHROPIC_API_KEY', connection.key],
  ],
  lines: ({ connection }) => `# both SDKs read these variables; they append /v1/messages themselves

// TypeScript
${imported('Anthropic', '@anthropic-ai/sdk')}
const client = ${anthropicClientCode(connection)};
const answer = await client.messages.create({
  model: ${quoted(connection.model)},
  max_tokens: 256,
  messages: [{ role: 'user', content: 'Say hello.' }],
});
console.log(answer.content);

# Python
import os
from anthropic import Anthropic
client = Anthropic(base_url=${quoted(connection.url)}, api_key=${pythonKey(connection)})
answer = client.messages.create(
    model=${quoted(connection.model)},
    max_tokens=256,
    messages=[{'role': 'user', 'content': 'Say hello.'}],
)
print(answer.content)
`,
};

export const aiSdk: Client = {
  name: 'ai-sdk',
  title: 'AI SDK (TypeScript)',
  calls: 'responses, chat, messages',
  lines: ({ connection }) => {
    const base = quoted(baseUrl(connection));
    const model = quoted(connection.model);
    const { maxOutput } = connection;
    const most = maxOutput === undefined ? '' : `, maxOutputTokens: ${maxOutput}`;
    return `// responses
${imported('{ createOpenAI }', '@ai-sdk/openai')}
${imported('{ generateText }', 'ai')}
const gateway = createOpenAI({ baseURL: ${base}, apiKey: ${keyCode(connection)} });
console.log((await generateText({ model: gateway(${model}), prompt: 'Say hello.'${most} })).text);

// chat completions
${imported('{ createOpenAICompatible }', '@ai-sdk/openai-compatible')}
${imported('{ generateText }', 'ai')}
const gateway = createOpenAICompatible({ name: '${provider}', baseURL: ${base}, apiKey: ${keyCode(connection)}, includeUsage: true });
console.log((await generateText({ model: gateway(${model}), prompt: 'Say hello.'${most} })).text);

// messages
${imported('{ createAnthropic }', '@ai-sdk/anthropic')}
${imported('{ generateText }', 'ai')}
const gateway = createAnthropic({ baseURL: ${base}, apiKey: ${keyCode(connection)} });
console.log((await generateText({ model: gateway(${model}), prompt: 'Say hello.'${most} })).text);
`;
  },
  notes: () => [
    '@ai-sdk/openai names earlier answers by their ids, which the gateway keeps for 24 hours. Where it keeps none (responses: store: off), the calls need providerOptions: { openai: { store: false } }.',
  ],
};

export const langchain: Client = {
  name: 'langchain',
  title: 'LangChain (TypeScript, Python)',
  calls: 'chat, messages, responses',
  lines: ({ connection }) => {
    const { url, model } = connection;
    const [base, name, key] = [quoted(baseUrl(connection)), quoted(model), keyCode(connection)];
    return `// TypeScript: chat completions
${imported('{ ChatOpenAI }', '@langchain/openai')}
const model = new ChatOpenAI({ model: ${name}, apiKey: ${key}, useResponsesApi: false, configuration: { baseURL: ${base} } });
console.log((await model.invoke('Say hello.')).text);

// TypeScript: responses
${imported('{ ChatOpenAI }', '@langchain/openai')}
const model = new ChatOpenAI({ model: ${name}, apiKey: ${key}, useResponsesApi: true, configuration: { baseURL: ${base} } });
console.log((await model.invoke('Say hello.')).text);

// TypeScript: messages
${imported('{ ChatAnthropic }', '@langchain/anthropic')}
const model = new ChatAnthropic({ model: ${name}, apiKey: ${key}, anthropicApiUrl: ${quoted(url)} });
console.log((await model.invoke('Say hello.')).text);

# Python: chat completions
import os
from langchain_openai import ChatOpenAI
model = ChatOpenAI(model=${name}, api_key=${pythonKey(connection)}, base_url=${base}, use_responses_api=False)
print(model.invoke('Say hello.').content)

# Python: responses
import os
from langchain_openai import ChatOpenAI
model = ChatOpenAI(model=${name}, api_key=${pythonKey(connection)}, base_url=${base}, use_responses_api=True)
print(model.invoke('Say hello.').text)

# Python: messages
import os
from langchain_anthropic import ChatAnthropic
model = ChatAnthropic(model=${name}, api_key=${pythonKey(connection)}, base_url=${quoted(url)})
print(model.invoke('Say hello.').content)
`;
  },
};

export const openaiAgents: Client = {
  name: 'openai-agents',
  title: 'OpenAI Agents SDK (TypeScript, Python)',
  calls: 'responses, chat',
  lines: ({ connection }) => {
    const model = quoted(connection.model);
    return `// TypeScript: responses
${imported('{ Agent, run, setDefaultOpenAIClient, setTracingDisabled }', '@openai/agents')}
${imported('OpenAI', 'openai')}
setDefaultOpenAIClient(${openaiClientCode(connection)});
setTracingDisabled(true);
const agent = new Agent({ name: 'Agent', model: ${model} });
console.log((await run(agent, 'Say hello.')).finalOutput);

// TypeScript: chat completions
${imported('{ Agent, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled }', '@openai/agents')}
${imported('OpenAI', 'openai')}
setDefaultOpenAIClient(${openaiClientCode(connection)});
setOpenAIAPI('chat_completions');
setTracingDisabled(true);
const agent = new Agent({ name: 'Agent', model: ${model} });
console.log((await run(agent, 'Say hello.')).finalOutput);

# Python: responses; OpenAIChatCompletionsModel in its place calls chat completions
import os
from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI
client = AsyncOpenAI(base_url=${quoted(baseUrl(connection))}, api_key=${pythonKey(connection)})
set_tracing_disabled(True)
agent = Agent(name='Agent', model=OpenAIResponsesModel(model=${model}, openai_client=client))
print(Runner.run_sync(agent, 'Say hello.').final_output)
`;
  },
  notes: () => ['Tracing is off in these lines: traces would go to OpenAI with the gateway’s key.'],
};

export const litellm: Client = {
  name: 'litellm',
  title: 'LiteLLM (Python)',
  calls: 'chat',
  lines: ({ connection }) => `# Python
import os
from litellm import completion
answer = completion(
    model=${quoted(`openai/${connection.model}`)},
    api_base=${quoted(baseUrl(connection))},
    api_key=${pythonKey(connection)},
    messages=[{'role': 'user', 'content': 'Say hello.'}],
)
print(answer.choices[0].message.content)
`,
};

export const curl: Client = {
  name: 'curl',
  title: 'curl',
  calls: 'chat, messages',
  lines: ({ connection }) => `${chatCurl(connection)}\n\n${messagesCurl(connection)}\n`,
};

/** A line of TypeScript; written so that the check of this project's own imports does not take it for one. */
function imported(what: string, from: string): string {
  return `import ${what}`.concat(` from '${from}';`);
}
