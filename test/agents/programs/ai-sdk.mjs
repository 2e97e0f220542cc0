// The AI SDK with its OpenAI provider as it is by default: `/v1/responses`, responses kept.
// Usage: node ai-sdk.mjs, with GATEWAY and KEY in the environment. Each line of its input is an object with the act's name
// and the model; it prints a line with one JSON object for each.
import { createInterface } from 'node:readline';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, Output, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

const { GATEWAY, KEY } = process.env;
const openai = createOpenAI({ baseURL: GATEWAY, apiKey: KEY });
const weather = tool({
  description: 'Tells the weather of a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: ({ city }) => `sunny in ${city}`,
});
const shellOutput = { stdout: 'of shell', stderr: '', outcome: { type: 'exit', exitCode: 0 } };

function actsWith(name) {
  const model = openai(name);
  const asked = { model, prompt: 'Weather?', maxRetries: 0 };
  const withTools = { ...asked, tools: { weather }, stopWhen: stepCountIs(5) };
  /** What the tools of OpenAI's own types were called with. */
  const ran = {};
  const typedTools = {
    shell: openai.tools.shell({
      execute: ({ action }) => {
        ran.shell = action.commands;
        return { output: [shellOutput] };
      },
    }),
    local_shell: openai.tools.localShell({
      execute: ({ action }) => {
        ran.local_shell = action.command;
        return { output: 'of local_shell' };
      },
    }),
    apply_patch: openai.tools.applyPatch({
      execute: ({ operation }) => {
        ran.apply_patch = operation;
        return { status: 'completed', output: 'of apply_patch' };
      },
    }),
    free: openai.tools.customTool({
      name: 'free',
      format: { type: 'grammar', syntax: 'regex', definition: '[a-z]+' },
      execute: (text) => {
        ran.free = text;
        return 'of free';
      },
    }),
  };

  return {
    typed: async () => ({
      ...(await toldOf(await generateText({ ...withTools, tools: typedTools }))),
      ran,
    }),
    typedStream: async () => {
      const result = streamText({ ...withTools, tools: typedTools });
      await result.consumeStream();
      return { ...(await toldOf(result)), ran };
    },
    steps: async () => toldOf(await generateText(withTools)),
    stream: async () => {
      const errors = [];
      const result = streamText({
        ...withTools,
        onError: ({ error }) => errors.push(String(error)),
      });
      let streamed = '';
      for await (const text of result.textStream) streamed += text;
      const told = await toldOf(result).catch((error) => ({ thrown: String(error) }));
      return { streamed, errors, ...told };
    },
    object: async () => {
      const output = Output.object({ schema: z.object({ city: z.string(), degrees: z.number() }) });
      return { object: (await generateText({ ...asked, output })).output };
    },
    unkept: async () => {
      const providerOptions = { openai: { store: false } };
      return toldOf(await generateText({ ...withTools, providerOptions }));
    },
    chain: async () => {
      const first = await generateText(asked);
      const previousResponseId = first.providerMetadata.openai.responseId;
      const providerOptions = { openai: { previousResponseId } };
      return toldOf(await generateText({ ...asked, prompt: 'And tomorrow?', providerOptions }));
    },
  };
}

async function toldOf(result) {
  const steps = await result.steps;
  return {
    text: await result.text,
    finish: await result.finishReason,
    calls: steps.flatMap(({ toolCalls }) => toolCalls.map(({ input }) => input.city ?? '')),
    reasoning: steps.map(({ reasoningText }) => reasoningText ?? ''),
    usage: await result.totalUsage,
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { name, model } = JSON.parse(line);
  const act = actsWith(model)[name];
  const told = await act().catch((error) => ({ thrown: String(error) }));
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
