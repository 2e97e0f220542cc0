/** The prompt of a request for token counting: its texts, its media, its frames. */
import type { Medium, Prompt } from '../../../core/description.ts';
import { isObject, type Json, type JsonObject } from '../../../json/value.ts';

const contentFrame = 5;
const partFrame = 2;
const toolFrame = 12;
/** Tokens of the frames around the whole prompt, and of the opening of the answer. */
const promptFrame = 8;

export function promptOf(body: JsonObject): Prompt {
  const reader = new PromptReader();
  reader.content(body['systemInstruction']);
  for (const content of listOf(body['contents'])) reader.content(content);
  for (const tool of listOf(body['tools'])) reader.tool(tool);
  const config = body['generationConfig'];
  if (isObject(config)) {
    reader.write(config['responseJsonSchema']);
    reader.write(config['responseSchema']);
  }
  return reader;
}

class PromptReader implements Prompt {
  readonly texts: string[] = [];
  readonly media: Medium[] = [];
  frameTokens = promptFrame;

  content(content: Json | undefined): void {
    if (!isObject(content)) return;
    this.frameTokens += contentFrame;
    for (const part of listOf(content['parts'])) if (isObject(part)) this.#part(part);
  }

  tool(tool: Json): void {
    if (!isObject(tool)) return;
    for (const declared of listOf(tool['functionDeclarations'])) {
      this.frameTokens += toolFrame;
      this.write(declared);
    }
  }

  /** Adds a value that the model reads as JSON. */
  write(value: Json | undefined): void {
    if (value !== undefined) this.texts.push(JSON.stringify(value));
  }

  #part(part: JsonObject): void {
    this.frameTokens += partFrame;
    const { text, inlineData, fileData, functionCall, functionResponse } = part;
    if (typeof text === 'string' && text !== '') this.texts.push(text);
    if (isObject(inlineData)) this.#medium(inlineData);
    if (isObject(fileData)) this.#medium(fileData);
    if (isObject(functionCall)) {
      this.write(functionCall['name']);
      this.write(functionCall['args']);
    }
    if (!isObject(functionResponse)) return;
    this.write(functionResponse['response']);
    for (const each of listOf(functionResponse['parts'])) if (isObject(each)) this.#part(each);
  }

  #medium({ mimeType, data }: JsonObject): void {
    const type = typeof mimeType === 'string' ? mimeType : '';
    const kind = type.startsWith('audio/')
      ? 'audio'
      : type.startsWith('image/')
        ? 'image'
        : 'document';
    this.media.push({
      kind,
      data: typeof data === 'string' ? data : undefined,
      lowDetail: false,
    });
  }
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
