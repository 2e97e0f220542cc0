/** The request that a side would send next. */
import { extraMembers, requestBody, SettingError } from './formats/request.ts';
import type { CodedRequest } from './formats/code.ts';
import type { CallSettings, Turn, UserTurn } from './formats/turns.ts';

export interface NextRequest extends CodedRequest {
  /** What it ends with: the message that is being written, the turn that was asked last, or an example. */
  readonly ends: 'draft' | 'asked' | 'example';
  readonly hasPictures: boolean;
}

const example: UserTurn = { role: 'user', text: 'Say hello.', pictures: [] };

/** Turns without the answer at their end: what is sent to have another one. */
export function withoutAnswer(turns: readonly Turn[]): readonly Turn[] {
  return turns.at(-1)?.role === 'assistant' ? turns.slice(0, -1) : turns;
}

/** A setting that is wrong is returned, so that it can be shown. */
export function nextRequest(
  settings: CallSettings,
  turns: readonly Turn[],
  draft: UserTurn,
): NextRequest | SettingError {
  const isWritten = draft.text.trim() !== '' || draft.pictures.length > 0;
  const asked = withoutAnswer(turns);
  const ends = isWritten ? 'draft' : asked.length > 0 ? 'asked' : 'example';
  const all = { draft: [...turns, draft], asked, example: [example] }[ends];
  try {
    return {
      endpoint: settings.endpoint,
      body: requestBody(settings, all),
      extra: extraMembers(settings),
      ends,
      hasPictures: all.some((turn) => turn.role === 'user' && turn.pictures.length > 0),
    };
  } catch (error) {
    if (error instanceof SettingError) return error;
    throw error;
  }
}
