/** One side of the playground: its own conversation, and the call that runs or ran last. */
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { sessionKey } from '../../api/session.ts';
import { stayingSignal } from '../../api/sign-out.ts';
import { requestBody } from './formats/request.ts';
import type { CallSettings, Turn } from './formats/turns.ts';
import { withoutAnswer } from './next-request.ts';
import { play, startOf, type Asked, type Played } from './play.ts';

export interface Side {
  readonly turns: readonly Turn[];
  readonly played: Played | undefined;
  readonly running: boolean;
  /** Adds turns and requests the next one; without new ones it requests the last answer anew. @throws SettingError */
  ask(settings: CallSettings, key: string, added: readonly Turn[]): void;
  stop(): void;
  /** Ends what runs, and puts another conversation in its place. */
  load(turns: readonly Turn[]): void;
}

export function useSide(): Side {
  const client = useQueryClient();
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const [played, setPlayed] = useState<Played>();
  const call = useRef<AbortController>(undefined);
  // A page that is left requests nothing more.
  useEffect(() => () => call.current?.abort(), []);

  const ask = useCallback<Side['ask']>(
    (settings, key, added) => {
      const all = added.length === 0 ? withoutAnswer(turns) : [...turns, ...added];
      const asked: Asked = { endpoint: settings.endpoint, key, body: requestBody(settings, all) };
      call.current?.abort();
      const controller = new AbortController();
      call.current = controller;
      setTurns(all);
      setPlayed(startOf(asked));
      const show = paced((step) => {
        if (call.current !== controller) return;
        setPlayed(step);
        if (step.state === 'running') return;
        const { text, reasoning, calls } = step.answer;
        const isAnswer = step.state !== 'failed' && (text !== '' || calls.length > 0);
        if (isAnswer) setTurns([...all, { role: 'assistant', text, reasoning, calls }]);
        if (step.status === 401) void client.invalidateQueries({ queryKey: sessionKey });
      });
      void play(asked, AbortSignal.any([controller.signal, stayingSignal()]), show);
    },
    [client, turns],
  );
  const stop = useCallback(() => call.current?.abort(), []);
  const load = useCallback((loaded: readonly Turn[]) => {
    call.current?.abort();
    call.current = undefined;
    setTurns(loaded);
    setPlayed(undefined);
  }, []);
  return { turns, played, running: played?.state === 'running', ask, stop, load };
}

/** Shows a stream at the pace of the screen; the last step at once. */
function paced(show: (played: Played) => void): (played: Played) => void {
  let latest: Played | undefined;
  let frame = 0;
  return (played) => {
    latest = played;
    if (played.state !== 'running') {
      cancelAnimationFrame(frame);
      show(played);
    } else if (frame === 0) {
      frame = requestAnimationFrame(() => {
        frame = 0;
        if (latest?.state === 'running') show(latest);
      });
    }
  };
}
