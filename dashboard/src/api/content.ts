/** What a call said, where its key logs content: `/api/calls/:id/content`. */
import { useQuery } from '@tanstack/react-query';
import { get } from './client.ts';
import { operators, useMay } from './session.ts';

export interface LoggedBody {
  /** Of the body itself. */
  readonly bytes: number;
  readonly cut: boolean;
  readonly form: 'json' | 'events' | 'text';
  readonly content: unknown;
}

export interface LoggedHeader {
  readonly name: string;
  /** Null: not stored. */
  readonly value: string | null;
}

export interface LoggedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly LoggedHeader[];
  readonly body: LoggedBody | null;
}

export interface CallContent {
  readonly state: 'kept' | 'absent' | 'locked' | 'unreadable';
  readonly logged_now: boolean;
  readonly request: LoggedRequest | null;
  readonly answer: {
    readonly status: number;
    readonly headers: readonly LoggedHeader[];
    readonly body: LoggedBody;
    readonly whole: boolean;
  } | null;
  readonly attempts: readonly {
    readonly target: string;
    readonly status: number | null;
    readonly body: LoggedBody;
  }[];
}

/** Nothing for those who may not read it. */
export function useContent(id: string) {
  const enabled = useMay(operators);
  return useQuery({
    enabled,
    queryKey: ['call', id, 'content'],
    queryFn: ({ signal }) =>
      get<CallContent>(`/api/calls/${encodeURIComponent(id)}/content`, { signal }),
    staleTime: Infinity,
  });
}
