// LangChain's ChatOpenAI with `useResponsesApi`.
// Usage: node langchain.mjs, with GATEWAY and KEY in the environment. Each line of its input is an object with the act's name
// and the model; it prints a line with one JSON object for each.
import { createInterface } from 'node:readline';
import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';

const { GATEWAY, KEY } = process.env;
const weather = tool(({ city }) => `sunny in ${city}`, {
  name: 'weather',
  description: 'Tells the weather of a city.',
  schema: z.object({ city: z.string() }),
});

function actsWith(name) {
  const model = new ChatOpenAI({
    model: name,
    apiKey: KEY,
    useResponsesApi: true,
    maxRetries: 0,
    configuration: { baseURL: GATEWAY },
  });
  const able = model.bindTools([weather]);
  return {
    steps: () => loop((messages) => able.invoke(messages)),
    stream: async () => {
      let streamed = '';
      const told = await loop(async (messages) => {
        let whole;
        for await (const chunk of await able.stream(messages)) {
          streamed += chunk.text;
          whole = whole === undefined ? chunk : whole.concat(chunk);
        }
        return whole;
      });
      return { streamed, ...told };
    },
    object: async () => {
      const schema = z.object({ city: z.string(), degrees: z.number() });
      return { object: await model.withStructuredOutput(schema).invoke('Weather?') };
    },
    chain: async () => {
      const first = await model.invoke('Weather?');
      const options = { previous_response_id: first.response_metadata.id };
      return { text: (await model.invoke('And tomorrow?', options)).text };
    },
  };
}

/** Asks until no tool is called. */
async function loop(ask) {
  const messages = [new HumanMessage('Weather?')];
  const calls = [];
  const usage = { inputTokens: 0, outputTokens: 0 };
  for (;;) {
    const answer = await ask(messages);
    messages.push(answer);
    usage.inputTokens += answer.usage_metadata.input_tokens;
    usage.outputTokens += answer.usage_metadata.output_tokens;
    if (answer.tool_calls.length === 0) return { text: answer.text, calls, usage };
    for (const call of answer.tool_calls) {
      calls.push(call.args.city);
      messages.push(await weather.invoke(call));
    }
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { name, model } = JSON.parse(line);
  const act = actsWith(model)[name];
  const told = await act().catch((error) => ({ thrown: String(error) }));
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
