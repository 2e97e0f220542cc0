/** The members of a response object that are read, or whose loss is decided. Others are noted. */
import { fields, kinds, openFields, wholes, type Fields } from '../../../core/shape.ts';
import { isPresent } from '../../shared/answers.ts';

/** Members of a part in addition to its content. */
const besideContent = [
  'thought',
  'thoughtSignature',
  'videoMetadata',
  'mediaResolution',
  'mediaProcessing',
  'partMetadata',
  'speechMetadata',
] as const;

/** Members of a part that are none of the provider's own tools and media. */
export const besideData: ReadonlySet<string> = new Set(['text', ...besideContent]);

const part = kinds(
  ({ functionCall, text }) => (isPresent(functionCall) ? 'call' : isPresent(text) ? 'text' : ''),
  {
    call: fields({
      ...wholes(...besideContent),
      functionCall: fields({
        ...wholes('id', 'name', 'args', 'willContinue'),
        partialArgs: fields({
          ...wholes('jsonPath', 'willContinue'),
          ...wholes('stringValue', 'numberValue', 'boolValue', 'nullValue'),
        }),
      }),
    }),
    text: fields(wholes('text', ...besideContent)),
  },
  // A part without a text is carried or noted as a whole.
  openFields({}),
);

/** `searchEntryPoint`, which the vendor wants to be displayed, has no place in other APIs. */
const grounding = fields({
  ...wholes('webSearchQueries', 'imageSearchQueries', 'retrievalQueries', 'retrievalMetadata'),
  ...wholes('googleMapsWidgetContextToken'),
  groundingChunks: fields(wholes('web', 'retrievedContext', 'maps', 'image')),
  groundingSupports: fields({
    ...wholes('groundingChunkIndices', 'confidenceScores'),
    segment: fields(wholes('partIndex', 'startIndex', 'endIndex', 'text')),
  }),
});

export const answerShape: Fields = fields({
  ...wholes('usageMetadata', 'modelVersion', 'responseId', 'createTime', 'modelStatus', 'error'),
  promptFeedback: fields(wholes('blockReason', 'blockReasonMessage', 'safetyRatings')),
  candidates: fields({
    ...wholes('index', 'finishReason', 'finishMessage', 'continuationToken', 'tokenCount'),
    ...wholes('avgLogprobs', 'logprobsResult', 'safetyRatings', 'urlContextMetadata'),
    // Sources of words that were recited.
    ...wholes('citationMetadata', 'groundingAttributions'),
    content: fields({ ...wholes('role'), parts: part }),
    groundingMetadata: grounding,
  }),
});
