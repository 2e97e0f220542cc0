/** Status of the gateway, polled while the page is visible. */
import { useQuery } from '@tanstack/react-query';
import { get } from './client.ts';
import { useMay, viewers } from './session.ts';

type Value = string | number | boolean | null;

/** Members of `/api/status` that this page knows by name; others are shown as they are called. */
export interface Status {
  readonly [member: string]: Value | undefined;
  readonly version?: string;
  /** Of the data plane, without `/v1`. */
  readonly url?: string;
  readonly ready?: boolean;
  readonly store?: string;
}

const everyMs = 5_000;

/** Nothing for members of teams. */
export function useStatus() {
  const enabled = useMay(viewers);
  return useQuery({
    enabled,
    queryKey: ['status'],
    queryFn: ({ signal }) => get<Status>('/api/status', { signal }),
    refetchInterval: everyMs,
  });
}

/** What listens everywhere is reached at the name by which this page was. */
export function reachable(url: string): string {
  return url.replace(/^(https?:\/\/)(0\.0\.0\.0|\[::\])(?=[:/]|$)/, `$1${location.hostname}`);
}
