/** The prompt of a request for token counting: its texts, its media, its frames. */
import type { Medium, Prompt } from '../../../core/description.ts';
import { isObject, type Json, type JsonObject, textOf } from '../../../json/value.ts';

const messageFrame = 5;
const blockFrame = 2;
const toolFrame = 12;
/** Tokens of the frames around the whole prompt, and of the opening of the answer. */
const promptFrame = 8;

export function promptOf(body: JsonObject): Prompt {
  const reader = new PromptReader();
  for (const block of objects(body['system'])) reader.block(block);
  for (const message of objects(body['messages'])) {
    reader.frameTokens += messageFrame;
    for (const block of objects(message['content'])) reader.block(block);
  }
  const { toolConfig, outputConfig } = body;
  if (isObject(toolConfig)) for (const tool of objects(toolConfig['tools'])) reader.tool(tool);
  if (isObject(outputConfig)) reader.write(outputConfig['textFormat']);
  return reader;
}

class PromptReader implements Prompt {
  readonly texts: string[] = [];
  readonly media: Medium[] = [];
  frameTokens = promptFrame;

  tool({ toolSpec }: JsonObject): void {
    if (!isObject(toolSpec)) return;
    this.frameTokens += toolFrame;
    this.write(toolSpec);
  }

  /** Adds a value that the model reads as JSON. */
  write(value: Json | undefined): void {
    if (value !== undefined) this.texts.push(JSON.stringify(value));
  }

  block(block: JsonObject): void {
    this.frameTokens += blockFrame;
    const { text, image, document, toolUse, toolResult, reasoningContent } = block;
    if (typeof text === 'string' && text !== '') this.texts.push(text);
    if (isObject(image)) this.#medium('image', image);
    if (isObject(document)) this.#medium('document', document);
    if (isObject(toolUse)) {
      this.write(toolUse['name']);
      this.write(toolUse['input']);
    }
    if (isObject(toolResult)) for (const each of objects(toolResult['content'])) this.block(each);
    const told = isObject(reasoningContent) ? reasoningContent['reasoningText'] : undefined;
    if (isObject(told)) this.texts.push(textOf(told['text']));
  }

  #medium(kind: Medium['kind'], { source }: JsonObject): void {
    const { bytes, text } = isObject(source) ? source : {};
    if (typeof text === 'string') this.texts.push(text);
    else {
      const data = typeof bytes === 'string' ? bytes : undefined;
      this.media.push({ kind, data, lowDetail: false });
    }
  }
}

function objects(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
