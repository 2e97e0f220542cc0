/** Documents that a client wants cited, and the places in them that an answer cites. */
import type { Conversation, DocumentPlace, MediaPart, Part } from '../../../core/conversation.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';

/** Notes each document that the client wants cited. For requests to a model that cites none. */
export function noteUncited(conversation: Conversation, notes: Notes): void {
  for (const part of documentsOf(conversation)) {
    if (part.citedAs === undefined) continue;
    const path = [...pathOf(part, ['messages']), 'citations'];
    notes.lost(path, 'this model does not cite documents');
  }
}

/** A place in the client's words: the index and the title of the document in the client's own request. */
export interface NamedPlace extends DocumentPlace {
  readonly title?: string | undefined;
}

/**
 * Undefined where it is not certain which document the provider counts: results of tools are sent in the order of their
 * calls, and documents in them that the model cannot take are omitted.
 * @param conversation absent where the request was not translated: the place is the client's own
 */
export function placeForClient(
  place: DocumentPlace,
  conversation: Conversation | undefined,
): NamedPlace | undefined {
  if (conversation === undefined) return place;
  const documents = documentsOf(conversation);
  if (documents.length > 1 && hasResultDocuments(conversation)) return undefined;
  const part = documents[place.document];
  if (part?.citedAs === undefined) return place;
  return { ...place, document: part.citedAs, title: part.name };
}

/** Documents in their order, those in results of tools included. */
function documentsOf({ turns }: Conversation): readonly MediaPart[] {
  const found: MediaPart[] = [];
  for (const { parts } of turns) addDocuments(parts, found);
  return found;
}

function hasResultDocuments({ turns }: Conversation): boolean {
  const results = turns.flatMap(({ parts }) => parts.filter(({ type }) => type === 'tool-result'));
  const found: MediaPart[] = [];
  addDocuments(results, found);
  return found.length > 0;
}

function addDocuments(parts: readonly Part[], found: MediaPart[]): void {
  for (const part of parts) {
    if (part.type === 'tool-result') addDocuments(part.parts, found);
    else if (part.type === 'media' && part.kind === 'document') found.push(part);
  }
}
