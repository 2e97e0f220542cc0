// The OpenAI Agents SDK as it is by default: `/v1/responses`.
// Usage: node openai-agents.mjs, with GATEWAY and KEY in the environment. Each line of its input is an object with the act's name
// and the model; it prints a line with one JSON object for each.
import { createInterface } from 'node:readline';
import { Agent, run, setDefaultOpenAIClient, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';

const { GATEWAY, KEY } = process.env;
setDefaultOpenAIClient(new OpenAI({ baseURL: GATEWAY, apiKey: KEY, maxRetries: 0 }));
setTracingDisabled(true);
const weather = tool({
  name: 'weather',
  description: 'Tells the weather of a city.',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => `sunny in ${city}`,
});

function actsWith(model) {
  const agent = new Agent({
    name: 'Forecaster',
    instructions: 'Be brief.',
    model,
    tools: [weather],
  });
  return {
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
      const result = await run(new Agent({ name: 'Typed', model, outputType }), 'Weather?');
      return { object: result.finalOutput };
    },
    chain: async () => {
      const first = await run(agent, 'Weather?');
      const previousResponseId = first.lastResponseId;
      return toldOf(await run(agent, 'And tomorrow?', { previousResponseId }));
    },
  };
}

function toldOf(result) {
  const calls = result.newItems.filter(({ type }) => type === 'tool_call_item');
  const { inputTokens, outputTokens } = result.runContext.usage;
  return {
    text: result.finalOutput,
    calls: calls.map(({ rawItem }) => JSON.parse(rawItem.arguments).city),
    usage: { inputTokens, outputTokens },
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { name, model } = JSON.parse(line);
  const act = actsWith(model)[name];
  const told = await act().catch((error) => ({ thrown: String(error) }));
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
