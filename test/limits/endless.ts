/** A stream that goes on and on. */
import { frame, legalFrames, text, textPiece } from '../faults/stream-pieces.ts';
import type { UpstreamDialect } from '../support/dialects.ts';
import type { Answer } from '../upstream/scripted.ts';

/** A stream that never ends by itself. */
export function endlessAnswer(upstream: UpstreamDialect): Answer {
  const frames = legalFrames(upstream);
  const firstWord = frames.findIndex((each) => String(each).includes(text.slice(0, 4)));
  const begin = frames.slice(0, firstWord);
  const delta = frame(upstream, textPiece(upstream, ' tomorrow'));
  return { body: [...begin, ...Array.from({ length: 400 }, () => delta)], ending: 'hang' };
}
