/** What the playground is opened with: a shared link, or a call that is made again. */
import { useQuery } from '@tanstack/react-query';
import { useEffect, useEffectEvent } from 'react';
import { useLocation, useSearch } from 'wouter';
import type { CallDetails } from '../../api/calls.ts';
import { get } from '../../api/client.ts';
import type { CallContent } from '../../api/content.ts';
import { readRequest } from './formats/reading.ts';
import { isRecord } from './formats/request.ts';
import { isShared, readFragment } from './formats/share.ts';
import type { Snapshot } from './formats/snapshot.ts';
import { callEndpoints, noSettings, type UserTurn } from './formats/turns.ts';

/** What was opened, and what to say of it; without a snapshot nothing changes. */
export interface Opened {
  readonly snapshot: Snapshot | undefined;
  readonly notice: string;
}

export const noDraft: UserTurn = { role: 'user', text: '', pictures: [] };

/** A link in the address: read once, then taken out of it, so that a reload does not bring it back. */
export function useSharedLink(open: (opened: Opened) => void): void {
  const read = useEffectEvent(async () => {
    const { hash, pathname, search } = location;
    if (!isShared(hash)) return;
    history.replaceState(history.state, '', pathname + search);
    const snapshot = await readFragment(hash);
    const notice =
      snapshot === undefined
        ? 'The link is damaged: nothing could be read from it. Copy it again, as a whole.'
        : 'Opened from a link. Read it before you send it: others may have written it.';
    open({ snapshot, notice });
  });
  useEffect(() => {
    const onChange = (): void => void read();
    onChange();
    addEventListener('hashchange', onChange);
    return () => removeEventListener('hashchange', onChange);
  }, []);
}

interface MadeCall {
  readonly call: CallDetails;
  readonly content: CallContent;
}

/** The call of `?call=ID`; the query is for its error. */
export function useCallAgain(open: (opened: Opened) => void) {
  const id = new URLSearchParams(useSearch()).get('call') ?? '';
  const [location, navigate] = useLocation();
  const made = useQuery({
    enabled: id !== '',
    queryKey: ['playground', 'again', id],
    queryFn: async ({ signal }): Promise<MadeCall> => {
      const path = `/api/calls/${encodeURIComponent(id)}`;
      const [call, content] = await Promise.all([
        get<CallDetails>(path, { signal }),
        get<CallContent>(`${path}/content`, { signal }),
      ]);
      return { call, content };
    },
  });
  const { data } = made;
  const take = useEffectEvent((found: MadeCall) => {
    open(openedCall(found));
    navigate(location, { replace: true });
  });
  useEffect(() => {
    if (data !== undefined) take(data);
  }, [data]);
  return made;
}

function openedCall({ call, content }: MadeCall): Opened {
  const endpoint = callEndpoints[call.endpoint] ?? 'chat';
  const body = content.request?.body;
  const { model: _model, ...standard } = noSettings;
  if (body?.form !== 'json' || body.cut || !isRecord(body.content)) {
    const settings = { ...standard, endpoint, stream: call.stream };
    const why = body?.cut === true ? 'was truncated' : 'is not stored';
    return {
      snapshot: { settings, sides: [{ model: call.model, turns: [] }], draft: noDraft },
      notice: `Endpoint and model of call ${call.id}. Its content ${why}: write the message yourself.`,
    };
  }
  const { settings, model, turns, leftOut } = readRequest(endpoint, body.content);
  const lost = leftOut.length === 0 ? '' : ` Left out: ${leftOut.join(', ')}.`;
  return {
    snapshot: { settings, sides: [{ model, turns }], draft: noDraft },
    notice: `The request of call ${call.id}. Send asks it again.${lost}`,
  };
}
