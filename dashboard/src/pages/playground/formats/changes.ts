/** Where the body that an upstream gets differs from the body that the client sent. */
import { isRecord } from './request.ts';

export interface BodyChange {
  /** `messages[0].content`; '' is the body itself. */
  readonly path: string;
  /** As JSON; undefined: it is not there. */
  readonly sent: string | undefined;
  readonly got: string | undefined;
}

/** The deepest members that differ, in the order of the sent body, then those that only the upstream gets. */
export function bodyChanges(sent: unknown, got: unknown, path = ''): readonly BodyChange[] {
  if (Array.isArray(sent) && Array.isArray(got)) {
    const length = Math.max(sent.length, got.length);
    return Array.from({ length }, (_, index) =>
      bodyChanges(sent[index], got[index], `${path}[${index}]`),
    ).flat();
  }
  if (isRecord(sent) && isRecord(got)) {
    const names = new Set([...Object.keys(sent), ...Object.keys(got)]);
    return [...names].flatMap((name) =>
      bodyChanges(sent[name], got[name], path === '' ? name : `${path}.${name}`),
    );
  }
  const texts = [sent, got].map((value) => JSON.stringify(value) as string | undefined);
  return texts[0] === texts[1] ? [] : [{ path, sent: texts[0], got: texts[1] }];
}
