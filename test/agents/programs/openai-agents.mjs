// The OpenAI Agents SDK as it is by default: `/v1/responses`.
// Usage: node openai-agents.mjs ACT, with GATEWAY, KEY and MODEL in the environment; prints one JSON object.
import { Agent, run, setDefaultOpenAIClient, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';

const { GATEWAY, KEY, MODEL } = process.env;
setDefaultOpenAIClient(new OpenAI({ baseURL: GATEWAY, apiKey: KEY, maxRetries: 0 }));
setTracingDisabled(true);
const weather = tool({
  name: 'weather',
  description: 'Tells the weather of a city.',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => `sunny in ${city}`,
});
const agent = new Agent({
  name: 'Forecaster',
  instructions: 'Be brief.',
  model: MODEL,
  tools: [weather],
});

const acts = {
  steps: async () => toldOf(await run(agent, 'Weather?')),
  stream: async () => {
    const result = await run(agent, 'Weather?', { stream: true });
    let streamed = '';
    for await (const text of result.toTextStream()) streamed += text;
    await result.completed;
    return { streamed, ...toldOf(result) };
  },
  object: async () => {
    const outputType = z.object({ city: z.string(), degrees: z.number() });
    const result = await run(new Agent({ name: 'Typed', model: MODEL, outputType }), 'Weather?');
    return { object: result.finalOutput };
  },
  chain: async () => {
    const first = await run(agent, 'Weather?');
    const previousResponseId = first.lastResponseId;
    return toldOf(await run(agent, 'And tomorrow?', { previousResponseId }));
  },
};

function toldOf(result) {
  const calls = result.newItems.filter(({ type }) => type === 'tool_call_item');
  const { inputTokens, outputTokens } = result.runContext.usage;
  return {
    text: result.finalOutput,
    calls: calls.map(({ rawItem }) => JSON.parse(rawItem.arguments).city),
    usage: { inputTokens, outputTokens },
  };
}

const told = await acts[process.argv[2]]().catch((error) => ({ thrown: String(error) }));
process.stdout.write(JSON.stringify(told));
