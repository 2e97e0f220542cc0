/**
 * Writes turns as contents. A turn of the model is followed by a content with only the results of its calls, in the
 * order of the calls, then by the text of the user.
 */
import type {
  Conversation,
  MediaPart,
  ReasoningPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../../core/conversation.ts';
import type { Ask } from '../../../core/dialect.ts';
import { type FieldPath, invalidRequest, unsupported } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { JsonObject, JsonMembers } from '../../../json/value.ts';
import { taggedInstructions, taggedNote } from '../../shared/request/instructions.ts';
import { fillerNote, documentText } from '../../shared/request/message-turns.ts';
import { imageTypeOf } from '../../shared/body/body-media.ts';
import { sentToolName, ToolIdMap } from '../../shared/tool-names.ts';
import { toolInput } from '../../shared/request/tools.ts';
import { callSignature, dialectId, signatureFormat } from '../fields.ts';
import { maxToolName } from './write-tools.ts';

interface ContentWriting {
  readonly conversation: Conversation;
  readonly ask: Ask;
  readonly notes: Notes;
}

/** A medium that the request contains, in a turn of the user or in a result. */
export interface ShownMedia {
  readonly part: MediaPart;
  readonly path: FieldPath;
}

interface PositionedTurn {
  readonly turn: Turn;
  readonly path: FieldPath;
}

/** Writes the contents of one request. The state is the ids of its calls. */
export class ContentWriter {
  readonly written: { readonly role: 'user' | 'model'; readonly parts: JsonMembers[] }[] = [];
  readonly shown: ShownMedia[] = [];
  readonly #writing: ContentWriting;
  readonly #ids = new ToolIdMap();
  /** The name that each call so far was sent with, by the client's id of the call. */
  readonly #names = new Map<string, string>();
  /** The calls of the last turn of the model, in their order. */
  #calls: readonly string[] = [];
  /** Instructions for models without a system instruction. The first content of the user begins with them. */
  #front: readonly JsonObject[] = [];
  #notedReasoning = false;
  #notedFiller = false;

  constructor(writing: ContentWriting) {
    this.#writing = writing;
  }

  /** Puts instructions at the beginning of the first content of the user. */
  fold(instructions: readonly JsonObject[], path: FieldPath): void {
    if (instructions.length === 0) return;
    this.#front = instructions;
    this.#writing.notes.changed(path, 'the model has no instructions: they begin the first turn');
  }

  /** @throws GatewayError `invalid_request` when no turn has content for this upstream. */
  turns(turns: readonly Turn[]): void {
    const current = currentTurn(turns);
    let run: PositionedTurn[] = [];
    for (const [i, turn] of turns.entries()) {
      const path = pathOf(turn, ['messages', i]);
      if (turn.name !== undefined) {
        this.#writing.notes.lost([...path, 'name'], 'contents have no author');
      }
      if (turn.role !== 'assistant') {
        run.push({ turn, path });
        continue;
      }
      this.#run(run);
      run = [];
      this.#model({ turn, path }, i > current);
    }
    this.#run(run);
    if (this.written.length === 0) {
      throw invalidRequest('At least one message must have content.', pathOf(turns, ['messages']));
    }
    this.#askOn(turns);
  }

  /** Asks the model in a text of the user to continue its own last turn, unless it does so by itself. */
  #askOn(turns: readonly Turn[]): void {
    const last = turns.at(-1);
    if (this.written.at(-1)?.role !== 'model' || last === undefined) return;
    if (this.#writing.ask.traits.prefill) return;
    this.#push('user', [{ text: 'Continue.' }]);
    this.#writing.notes.changed(
      pathOf(last, ['messages', turns.length - 1]),
      'the model is asked to continue its last message',
    );
  }

  /** Everything between two turns of the model: all results first, alone in their content. */
  #run(run: readonly PositionedTurn[]): void {
    const attached: JsonMembers[] = [];
    const results = this.#resultsOf(run).map((part) => this.#result(part, attached));
    if (results.length > 0) this.written.push({ role: 'user', parts: results });
    const parts: JsonMembers[] = [...this.#front, ...attached];
    this.#front = [];
    for (const { turn, path } of run) {
      if (turn.role === 'system') parts.push(...this.#instructions(turn, path));
      else parts.push(...this.#userParts(turn, path));
    }
    if (parts.length > 0) this.written.push({ role: 'user', parts });
  }

  /** Results in the order of their calls. The API pairs them by this order. */
  #resultsOf(run: readonly PositionedTurn[]): readonly ToolResultPart[] {
    const results = run.flatMap(({ turn }) =>
      turn.parts.filter((part): part is ToolResultPart => part.type === 'tool-result'),
    );
    const indexes = new Map(this.#calls.map((id, index) => [id, index]));
    const order = (id: string): number => indexes.get(id) ?? -1;
    return results.toSorted((a, b) => order(a.callId) - order(b.callId));
  }

  #push(role: 'user' | 'model', parts: JsonMembers[]): void {
    const last = this.written.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else this.written.push({ role, parts });
  }

  /** Instructions after the first answer, as text of the user. */
  #instructions(turn: Turn, path: FieldPath): readonly JsonMembers[] {
    const texts: string[] = [];
    turn.parts.forEach((part, j) => {
      if (part.type !== 'text') {
        this.#writing.notes.lost([...path, j], 'instructions are text only');
      } else if (part.text.trim() !== '') texts.push(part.text);
    });
    if (texts.length === 0) return [];
    this.#writing.notes.changed(path, taggedNote);
    return [{ text: taggedInstructions(texts) }];
  }

  #userParts(turn: Turn, path: FieldPath): JsonMembers[] {
    return turn.parts.flatMap((part, j) => {
      const where = pathOf(part, [...path, 'content', j]);
      switch (part.type) {
        case 'tool-result':
          return [];
        case 'text':
          return part.text.trim() === '' ? [] : [{ text: part.text }];
        case 'media':
          return [this.#media(part, where)];
        case 'opaque':
          if (part.dialect === dialectId) return [part.value];
          break;
        default:
      }
      this.#writing.notes.lost(where, `a ${part.type} has no place in a content of the user`);
      return [];
    });
  }

  /** @throws GatewayError `invalid_request` for a medium that the upstream cannot read. */
  #media(part: MediaPart, path: FieldPath): JsonMembers {
    const written = this.#written(part, path);
    if (written !== undefined) return written;
    throw unsupported(path, `This model does not take this kind of ${part.kind}.`);
  }

  /** Undefined for a medium that the upstream cannot read. */
  #written(part: MediaPart, path: FieldPath): JsonMembers | undefined {
    const { ask, notes } = this.#writing;
    const type =
      part.kind === 'image' && 'base64' in part.source && imageTypeOf(part.source.base64);
    const written = writeMedia(part, ask.traits, type || part.mediaType);
    const declared = part.mediaType === 'image/jpg' ? 'image/jpeg' : part.mediaType;
    if (written !== undefined && type && declared !== '' && type !== declared) {
      notes.changed(path, `sent as ${type}, which its bytes are`);
    }
    if (written === undefined) return undefined;
    if (part.name !== undefined && !('text' in part.source)) {
      notes.lost(
        path,
        'only the name of the file, for which the model has no place: the file is sent',
      );
    }
    this.shown.push({ part, path });
    return written;
  }

  // Turns of the model.

  /** @param current the turn belongs to the tool loop in progress: its calls must be signed. */
  #model({ turn, path }: PositionedTurn, current: boolean): void {
    const parts = new ModelParts();
    const calls: string[] = [];
    turn.parts.forEach((part, j) => {
      const where = pathOf(part, [...path, 'content', j]);
      switch (part.type) {
        case 'text':
        case 'refusal':
          if (part.text !== '') parts.text(part.text);
          return;
        case 'tool-call':
          parts.call(this.#call(part, where), this.#signatureOf(part, where));
          calls.push(part.id);
          return;
        case 'reasoning': {
          const signature = this.#reasoning(part, where);
          if (signature !== undefined) parts.sealed(signature);
          return;
        }
        case 'opaque':
          if (part.dialect === dialectId) parts.other(part.value);
          else this.#writing.notes.lost(where, 'a part that only its own dialect knows');
          return;
        default:
          this.#writing.notes.lost(where, 'turns of the model hold text and calls only');
      }
    });
    if (current) this.#fill(parts, path);
    const written = parts.end();
    // The API refuses a content without parts.
    if (written.length > 0) this.#push('model', written);
    this.#calls = calls;
  }

  #call(part: ToolCallPart, path: FieldPath): JsonMembers {
    const name = sentToolName(part.name, maxToolName, this.#writing.conversation.tools);
    this.#names.set(part.id, name);
    const id = this.#ids.call(part.id);
    const { input, wrapped } = toolInput(part.argumentsJson);
    if (wrapped) {
      const why = 'tool arguments that are not a JSON object were wrapped';
      this.#writing.notes.changed(path, why);
    }
    return { name, args: input, ...this.#id(id) };
  }

  /** The id of a call, for servers that know ids. Others pair calls and results by their order. */
  #id(id: string): JsonMembers {
    return this.#writing.ask.traits.callIds === true ? { id } : {};
  }

  #signatureOf(part: ToolCallPart, path: FieldPath): string | undefined {
    const signature = callSignature(part);
    if (signature === undefined) return undefined;
    if (this.#isOwn(part)) return signature;
    this.#noteForeign(path);
    return undefined;
  }

  /** The signature of reasoning. Its text is not sent back, since the provider ignores it. */
  #reasoning(part: ReasoningPart, path: FieldPath): string | undefined {
    const { signature = '', encrypted, broken, origin, extras } = part;
    const vouched = signature !== '' || encrypted !== undefined;
    if (!vouched && broken !== true) return undefined;
    const told = origin !== undefined || extras?.['openai-chat']?.['format'] === signatureFormat;
    if (broken !== true && told && signature !== '' && this.#isOwn(part)) return signature;
    this.#noteForeign(path);
    return undefined;
  }

  /** A part without an origin comes from a client that returns what this provider sent. */
  #isOwn({ origin }: Pick<ToolCallPart, 'origin'>): boolean {
    const { traits, provider } = this.#writing.ask;
    if (traits.historyReasoning === false) return false;
    if (origin === undefined) return true;
    return origin.dialect === dialectId && (provider === undefined || origin.provider === provider);
  }

  /** Noted once a request, since a history may have hundreds of them. */
  #noteForeign(path: FieldPath): void {
    if (this.#notedReasoning) return;
    this.#notedReasoning = true;
    this.#writing.notes.lost(path, 'reasoning of another provider is not shown to this one');
  }

  /** Calls without a signature get the vendor's documented placeholder, once a step. No signature is invented. */
  #fill(parts: ModelParts, path: FieldPath): void {
    const filler = this.#writing.ask.traits.callSignatureFiller;
    if (filler === undefined || !parts.lackSignature) return;
    parts.fill(filler);
    if (!this.#notedFiller) this.#writing.notes.changed(path, fillerNote);
    this.#notedFiller = true;
  }

  // Results of calls.

  #result(part: ToolResultPart, attached: JsonMembers[]): JsonMembers {
    const texts: string[] = [];
    const media: JsonMembers[] = [];
    part.parts.forEach((each, k) => {
      const path = pathOf(each, ['messages', k]);
      if (each.type === 'text') texts.push(each.text);
      else if (each.type === 'media') texts.push(...this.#resultMedia(each, path, media));
      else this.#writing.notes.lost(path, 'not known to the model');
    });
    const id = this.#ids.result(part.callId);
    const shown = this.#attach(media, { id, texts, attached });
    const text = texts.join('\n');
    return {
      functionResponse: {
        name: this.#names.get(part.callId) ?? part.callId,
        response: part.failed ? { error: text } : { output: text },
        ...(shown.length === 0 ? {} : { parts: shown }),
        ...this.#id(id),
      },
    };
  }

  /** The text that replaces a medium. None if the medium itself is sent. */
  #resultMedia(part: MediaPart, path: FieldPath, media: JsonMembers[]): readonly string[] {
    const { traits } = this.#writing.ask;
    if ('text' in part.source) return [documentText(part, part.source.text)];
    const written = this.#written(part, path);
    if (written !== undefined) {
      media.push(written);
      return [];
    }
    // Agents send screenshots of their own accord. A refusal would end their session.
    const reason = traits.imageInput === 'none' ? 'model has no vision' : 'model cannot take it';
    this.#writing.notes.lost(path, `the ${part.kind} is left out, ${reason}`);
    return [`[${part.kind} omitted: ${reason}]`];
  }

  /** Older models take no media in a result. The media follow in the next content, with a label. */
  #attach(media: readonly JsonMembers[], { id, texts, attached }: Attaching): JsonMembers[] {
    if (this.#writing.ask.traits.toolResultMedia) return [...media];
    media.forEach((each, i) => {
      texts.push(`[file ${i + 1} attached below]`);
      attached.push({ text: `File ${i + 1} from tool result ${id}:` }, each);
    });
    return [];
  }
}

interface Attaching {
  /** Id of the call. */
  readonly id: string;
  readonly texts: string[];
  /** Parts at the beginning of the next content of the user. */
  readonly attached: JsonMembers[];
}

/** The index of the last turn with more than results. The API demands signatures of the calls after it. */
function currentTurn(turns: readonly Turn[]): number {
  return turns.findLastIndex(
    ({ role, parts }) =>
      role !== 'assistant' &&
      parts.some(
        (part) => part.type !== 'tool-result' && (part.type !== 'text' || part.text.trim() !== ''),
      ),
  );
}

/** The parts of one turn of the model. A signature without text belongs to the text before it, else to the next one. */
class ModelParts {
  readonly #parts: JsonMembers[] = [];
  readonly #calls: JsonMembers[] = [];
  #waiting: string | undefined;

  text(text: string): void {
    const part: JsonMembers = { text };
    if (this.#waiting !== undefined) part['thoughtSignature'] = this.#waiting;
    this.#waiting = undefined;
    this.#parts.push(part);
  }

  sealed(signature: string): void {
    this.#settle();
    const last = this.#parts.at(-1);
    if (last?.['text'] === undefined || last['thoughtSignature'] !== undefined) {
      this.#waiting = signature;
    } else last['thoughtSignature'] = signature;
  }

  call(functionCall: JsonMembers, signature: string | undefined): void {
    this.#settle();
    const part: JsonMembers = { functionCall };
    if (signature !== undefined) part['thoughtSignature'] = signature;
    this.#parts.push(part);
    this.#calls.push(part);
  }

  other(part: JsonObject): void {
    this.#settle();
    this.#parts.push({ ...part });
  }

  get lackSignature(): boolean {
    const calls = this.#calls;
    return calls.length > 0 && calls.every((call) => call['thoughtSignature'] === undefined);
  }

  fill(signature: string): void {
    const [first] = this.#calls;
    if (first !== undefined) first['thoughtSignature'] = signature;
  }

  end(): JsonMembers[] {
    this.#settle();
    return this.#parts;
  }

  #settle(): void {
    if (this.#waiting !== undefined) {
      this.#parts.push({ text: '', thoughtSignature: this.#waiting });
    }
    this.#waiting = undefined;
  }
}

// Media.

/** Undefined for a medium that the upstream cannot read. */
function writeMedia(
  part: MediaPart,
  { imageInput, fileInput }: Ask['traits'],
  mediaType: string,
): JsonMembers | undefined {
  const { kind, source } = part;
  if ('text' in source) return { text: documentText(part, source.text) };
  if (kind === 'image' ? imageInput === 'none' : !fileInput) return undefined;
  if ('base64' in source) {
    return { inlineData: { mimeType: typeOfMedia(kind, mediaType), data: source.base64 } };
  }
  if (!ownAddress.test(source.url) && imageInput !== 'url') return undefined;
  const mimeType = mediaType === '' ? typeByEnding(source.url) : mediaType;
  return {
    fileData: { ...(mimeType === undefined ? {} : { mimeType }), fileUri: source.url },
  };
}

/** Addresses that all models read: uploaded files, Cloud Storage, YouTube. */
const ownAddress =
  /^(gs:\/\/|https:\/\/generativelanguage\.googleapis\.com\/|https:\/\/(www\.)?youtube\.com\/watch|https:\/\/youtu\.be\/)/;

const usualTypes = { image: 'image/png', document: 'application/pdf', audio: 'audio/wav' } as const;

function typeOfMedia(kind: MediaPart['kind'], mediaType: string): string {
  return mediaType === '' ? usualTypes[kind] : mediaType;
}

const endings: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['webp', 'image/webp'],
  ['gif', 'image/gif'],
  ['heic', 'image/heic'],
  ['pdf', 'application/pdf'],
  ['txt', 'text/plain'],
  ['wav', 'audio/wav'],
  ['mp3', 'audio/mp3'],
  ['mp4', 'video/mp4'],
]);

function typeByEnding(url: string): string | undefined {
  const path = URL.parse(url)?.pathname ?? '';
  return endings.get(path.slice(path.lastIndexOf('.') + 1).toLowerCase());
}
