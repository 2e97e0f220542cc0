/** Events of this gateway since its start, and the webhooks that get them. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { get, send } from '../../api/client.ts';

export type Severity = 'info' | 'warning' | 'error';

export interface GatewayEvent {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly severity: Severity;
  /** The subject is well again. */
  readonly resolved: boolean;
  readonly subject: string;
  readonly text: string;
  readonly data: { readonly [member: string]: unknown };
}

export interface EventList {
  readonly events: readonly GatewayEvent[];
  readonly since: string | null;
  /** Older ones that the gateway no longer keeps. */
  readonly forgotten: number;
}

export interface Webhook {
  readonly id: string;
  readonly host: string;
  readonly format: string;
  /** Groups that are sent; null: all. */
  readonly events: readonly string[] | null;
  readonly delivered: number;
  readonly dropped: number;
  readonly pending: number;
  readonly delivered_at: string | null;
  readonly failures: readonly {
    readonly at: string;
    readonly event: string;
    readonly reason: string;
  }[];
}

export interface TestResult {
  readonly delivered: boolean;
  readonly reason: string | null;
  readonly ms: number;
}

const everyMs = 5_000;
/** All events that a gateway keeps. */
const allKept = 1000;

export function useEvents(group: string | undefined, severity: string | undefined) {
  return useQuery({
    queryKey: ['events', group, severity],
    queryFn: ({ signal }) =>
      get<EventList>('/api/events', { query: { group, severity, limit: allKept }, signal }),
    refetchInterval: everyMs,
    placeholderData: keepPreviousData,
  });
}

export function useWebhooks() {
  return useQuery({
    queryKey: ['webhooks'],
    queryFn: ({ signal }) =>
      get<{ readonly webhooks: readonly Webhook[] }>('/api/webhooks', { signal }),
    refetchInterval: everyMs,
  });
}

/** Posts a test event to the hook of an id. */
export function useWebhookTest() {
  const client = useQueryClient();
  return useMutation<TestResult, Error, string>({
    mutationFn: (id) => send<TestResult>('POST', `/api/webhooks/${encodeURIComponent(id)}/test`),
    onSettled: () => client.invalidateQueries({ queryKey: ['webhooks'] }),
  });
}
