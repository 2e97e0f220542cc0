/** How servers count the tokens of a prompt, as data (wire/upstreams.md §6). */
import type { JsonObject } from '../core/conversation.ts';
import type { Endpoint, TokenCounter } from '../core/provider.ts';

/** The counters that a row or a config may name. */
export type CounterKind = 'vllm' | 'llama-cpp';

export interface CounterPlace {
  /** An address beside the API's `/v1`. */
  endpoint(path: string): Endpoint;
}

/** A counter that takes a request as it is and answers with one number. */
export function plainCounter(endpoint: Endpoint, answerField: string): TokenCounter {
  return { steps: [{ endpoint }], countsMedia: true, read: (answer) => answer[answerField] };
}

export function counterOf(kind: CounterKind, place: CounterPlace): TokenCounter {
  return kind === 'vllm' ? vllm(place) : llamaCpp(place);
}

/** The members of a chat request that shape the prompt. */
function promptMembers(request: JsonObject): JsonObject {
  const { model, messages, tools, chat_template_kwargs: template } = request;
  return {
    ...(model === undefined ? {} : { model }),
    ...(messages === undefined ? {} : { messages }),
    ...(tools === undefined ? {} : { tools }),
    ...(template === undefined ? {} : { chat_template_kwargs: template }),
  };
}

function vllm({ endpoint }: CounterPlace): TokenCounter {
  const question = (request: JsonObject): JsonObject => ({
    ...promptMembers(request),
    add_generation_prompt: true,
  });
  return {
    steps: [{ endpoint: endpoint('/tokenize'), question }],
    countsMedia: false,
    read: (answer) => answer['count'],
  };
}

/** The template makes the prompt, the tokenizer counts it. */
function llamaCpp({ endpoint }: CounterPlace): TokenCounter {
  return {
    steps: [
      { endpoint: endpoint('/apply-template'), question: promptMembers },
      {
        endpoint: endpoint('/tokenize'),
        question: ({ model }, before) => {
          const prompt = before?.['prompt'];
          if (typeof prompt !== 'string') return undefined;
          const named = model === undefined ? {} : { model };
          return { ...named, content: prompt, add_special: true, parse_special: true };
        },
      },
    ],
    countsMedia: false,
    read: ({ tokens }) => (Array.isArray(tokens) ? tokens.length : undefined),
  };
}
