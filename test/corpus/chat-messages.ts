/** Chat requests, one for each field and case of messages, tools and formats. */
import type {
  ChatCompletionContentPart,
  ChatCompletionCreateParamsBase,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions/completions';
import type { JsonObject } from '../../src/json/value.ts';
import { pdf, png, type Samples } from './sample.ts';

type Sent = Partial<ChatCompletionCreateParamsBase>;

const user: ChatCompletionMessageParam = { role: 'user', content: 'Hi' };
const mark = { mode: 'explicit', ttl: '30m' } as const;
const marked = { type: 'ephemeral' } as const;

/** One user message of one part. */
function part(sent: ChatCompletionContentPart): Sent {
  return { messages: [{ role: 'user', content: [sent] }] };
}

/** The blocks of the only user message. */
function block(...blocks: readonly JsonObject[]): JsonObject {
  return { messages: [{ role: 'user', content: blocks }] };
}

function instructions(role: 'developer' | 'system'): Samples<Sent> {
  const at = `messages[${role}]`;
  return {
    [`${at} (before the first turn)`]: {
      sends: {
        messages: [
          {
            role,
            content: [
              { type: 'text', text: 'Be brief.', prompt_cache_breakpoint: mark },
              { type: 'text', text: 'Be kind.' },
            ],
          },
          user,
        ],
      },
      arrives: {
        system: [
          { type: 'text', text: 'Be brief.', cache_control: marked },
          { type: 'text', text: 'Be kind.' },
        ],
      },
      also: [`${at}.content.text (some text)`, `${at}.content.prompt_cache_breakpoint`],
    },
    [`${at} (later on, a model that takes it)`]: {
      behind: 'anthropic/claude-opus-4-8',
      sends: {
        messages: [
          user,
          { role: 'assistant', content: 'Yes?' },
          { role, content: 'Be brief.' },
          user,
        ],
      },
      arrives: {
        messages: [
          { role: 'user' },
          { role: 'assistant' },
          { role: 'system', content: [{ text: 'Be brief.' }] },
          { role: 'user' },
        ],
      },
    },
    [`${at} (later on, other models)`]: {
      sends: {
        messages: [user, { role: 'assistant', content: 'Yes?' }, { role, content: 'Be brief.' }],
      },
      arrives: {
        messages: [
          { role: 'user' },
          { role: 'assistant' },
          { role: 'user', content: [{ text: '<system>Be brief.</system>' }] },
        ],
      },
    },
    [`${at} (nothing but instructions)`]: {
      sends: { messages: [{ role, content: 'Say hello.' }] },
      arrives: block({ text: 'Say hello.' }),
      named: 'messages',
    },
    [`${at}.content.text (white space only)`]: {
      sends: { messages: [{ role, content: [{ type: 'text', text: ' \n' }] }, user] },
      absent: ['system'],
    },
    [`${at}.name`]: { sends: { messages: [{ role, content: 'Be brief.', name: 'boss' }, user] } },
  };
}

const parts: Samples<Sent> = {
  'messages[user].content[text].text (some text)': {
    sends: part({ type: 'text', text: 'One.', prompt_cache_breakpoint: mark }),
    arrives: block({ type: 'text', text: 'One.', cache_control: marked }),
    also: ['messages[user].content[text].prompt_cache_breakpoint'],
  },
  'messages[user].content[text].text (white space only)': {
    sends: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: '  ' },
            { type: 'text', text: 'One.' },
          ],
        },
      ],
    },
    arrives: block({ text: 'One.' }),
  },
  'messages[user].content[image_url].image_url.url (data URL of a JPEG, PNG, GIF or WebP)': {
    sends: part({
      type: 'image_url',
      image_url: { url: `data:image/png;base64,${png}`, detail: 'high' },
      prompt_cache_breakpoint: mark,
    }),
    arrives: block({
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: png },
      cache_control: marked,
    }),
    also: [
      'messages[user].content[image_url].image_url.detail',
      'messages[user].content[image_url].prompt_cache_breakpoint',
    ],
  },
  'messages[user].content[image_url].image_url.url (data URL under the name of another format)': {
    sends: part({ type: 'image_url', image_url: { url: `data:image/jpeg;base64,${png}` } }),
    named: 'messages.0.content.0',
    arrives: block({
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: png },
    }),
  },
  'messages[user].content[image_url].image_url.url (data URL of a PDF)': {
    sends: part({ type: 'image_url', image_url: { url: `data:application/pdf;base64,${pdf}` } }),
    arrives: block({
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: pdf },
    }),
  },
  'messages[user].content[image_url].image_url.url (data URL of another type)': {
    sends: part({ type: 'image_url', image_url: { url: `data:image/tiff;base64,${png}` } }),
  },
  'messages[user].content[image_url].image_url.url (http or https)': {
    sends: part({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }),
    arrives: block({ type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }),
  },
  'messages[user].content[input_audio]': {
    sends: part({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }),
  },
  'messages[user].content[file].file.file_data (PDF)': {
    sends: part({
      type: 'file',
      file: { file_data: `data:application/pdf;base64,${pdf}`, filename: 'a.pdf' },
      prompt_cache_breakpoint: mark,
    }),
    arrives: block({
      type: 'document',
      title: 'a.pdf',
      source: { type: 'base64', media_type: 'application/pdf', data: pdf },
      cache_control: marked,
    }),
    also: [
      'messages[user].content[file].file.filename',
      'messages[user].content[file].prompt_cache_breakpoint',
    ],
  },
  'messages[user].content[file].file.file_data (text)': {
    sends: part({
      type: 'file',
      file: {
        file_data: `data:text/plain;base64,${Buffer.from('Words.').toString('base64')}`,
        filename: 'a.txt',
      },
    }),
    arrives: block({ type: 'document', source: { type: 'text', data: 'Words.' } }),
  },
  'messages[user].content[file].file.file_data (address of a PDF)': {
    sends: part({
      type: 'file',
      file: { file_data: 'https://example.com/a.pdf', filename: 'a.pdf' },
    }),
    arrives: block({
      type: 'document',
      title: 'a.pdf',
      source: { type: 'url', url: 'https://example.com/a.pdf' },
    }),
  },
  'messages[user].content[file].file.file_data (other types)': {
    sends: part({
      type: 'file',
      file: { file_data: 'data:application/zip;base64,UEsDBA==', filename: 'a.zip' },
    }),
  },
  'messages[user].content[file].file.file_id': {
    sends: part({ type: 'file', file: { file_id: 'file-1' } }),
  },
  'messages[user].name': {
    sends: { messages: [{ role: 'user', content: 'Hi', name: 'Ann' }] },
  },
};

export const chatMessageSamples: Samples<object> = {
  ...instructions('developer'),
  ...instructions('system'),
  ...parts,
};
