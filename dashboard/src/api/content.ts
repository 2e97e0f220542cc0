/** What a call said, where its key logs content: `/api/calls/:id/content`. */
import { useQuery } from '@tanstack/react-query';
import { get } from './client.ts';

export interface KeptBody {
  /** Of the body itself. */
  readonly bytes: number;
  readonly cut: boolean;
  readonly form: 'json' | 'events' | 'text';
  readonly content: unknown;
}

export interface KeptHeader {
  readonly name: string;
  /** Null: not kept. */
  readonly value: string | null;
}

export interface KeptRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly KeptHeader[];
  readonly body: KeptBody | null;
}

export interface CallContent {
  readonly state: 'kept' | 'absent' | 'locked' | 'unreadable';
  readonly logged_now: boolean;
  readonly request: KeptRequest | null;
  readonly answer: {
    readonly status: number;
    readonly headers: readonly KeptHeader[];
    readonly body: KeptBody;
    readonly whole: boolean;
  } | null;
  readonly attempts: readonly {
    readonly target: string;
    readonly status: number | null;
    readonly body: KeptBody;
  }[];
}

export function useContent(id: string) {
  return useQuery({
    queryKey: ['call', id, 'content'],
    queryFn: ({ signal }) =>
      get<CallContent>(`/api/calls/${encodeURIComponent(id)}/content`, { signal }),
    staleTime: Infinity,
  });
}
