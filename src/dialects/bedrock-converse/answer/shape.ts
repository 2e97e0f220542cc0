/** The members of a document and of events that are read, or whose loss is decided. Others are noted. */
import { fields, kinds, openFields, wholes, type Fields } from '../../../core/shape.ts';

/** Reports on the call, and no part of an answer. */
const beside = wholes('usage', 'metrics', 'trace', 'performanceConfig', 'serviceTier');
const ending = wholes('stopReason', 'additionalModelResponseFields');

const citation = fields({
  ...wholes('title', 'source'),
  sourceContent: fields(wholes('text')),
  location: fields({
    web: fields(wholes('url', 'domain')),
    documentChar: fields(wholes('documentIndex', 'start', 'end')),
    documentPage: fields(wholes('documentIndex', 'start', 'end')),
    documentChunk: fields(wholes('documentIndex', 'start', 'end')),
    searchResultLocation: fields(wholes('searchResultIndex', 'start', 'end')),
  }),
});

const call = fields(wholes('toolUseId', 'name', 'input', 'type'));
const thought = ['text', 'signature', 'redactedContent'] as const;

/** The member that a block is read by. */
const contents = ['toolUse', 'reasoningContent', 'citationsContent', 'text'] as const;

const block = kinds(
  (content) => contents.find((name) => content[name] !== undefined),
  {
    toolUse: fields({ ...wholes('type'), toolUse: call }),
    reasoningContent: fields({
      ...wholes('type'),
      reasoningContent: fields({
        ...wholes(...thought),
        reasoningText: fields(wholes('text', 'signature')),
      }),
    }),
    citationsContent: fields({
      ...wholes('type'),
      citationsContent: fields({ content: fields(wholes('text')), citations: citation }),
    }),
    text: fields(wholes('type', 'text')),
  },
  // Other blocks are noted as a whole.
  openFields({}),
);

export const documentShape: Fields = fields({
  ...beside,
  ...ending,
  output: fields({ message: fields({ ...wholes('role'), content: block }) }),
});

const begun = kinds(
  (start) => (start['toolUse'] === undefined ? '' : 'call'),
  { call: fields({ toolUse: call }) },
  // Other blocks are noted as a whole.
  openFields({}),
);

const place = wholes('contentBlockIndex', 'p');

/** The events of an answer, by their type. Others are noted and not read. Results of the provider's own tools belong to a block that is noted as a whole. */
export const eventShapes: ReadonlyMap<string, Fields> = new Map([
  ['messageStart', fields(wholes('role', 'p'))],
  ['contentBlockStart', fields({ ...place, start: begun })],
  [
    'contentBlockDelta',
    fields({
      ...place,
      delta: fields({
        ...wholes('text', 'toolResult'),
        toolUse: fields(wholes('input')),
        reasoningContent: fields(wholes(...thought)),
        citation,
      }),
    }),
  ],
  ['contentBlockStop', fields(place)],
  ['messageStop', fields({ ...ending, ...wholes('p') })],
  ['metadata', fields({ ...beside, ...wholes('p') })],
]);
