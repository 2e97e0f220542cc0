/** The gateway and its store in the line of health. */

export interface HealthItem {
  readonly name: string;
  readonly state: 'good' | 'warn' | 'bad' | 'unknown';
  readonly text: string;
  readonly href: string;
}

/** The part of `/api/status` that it shows. */
interface StoreStatus {
  readonly [member: string]: unknown;
  readonly ready?: boolean;
}

/** @param failure what is known where the request failed */
export function storeItem(
  status: StoreStatus | undefined,
  failure: string | undefined,
): HealthItem {
  const item = { name: 'Gateway', href: '/setup' };
  if (failure !== undefined) return { ...item, state: 'bad', text: failure };
  if (status === undefined) return { ...item, state: 'unknown', text: '…' };
  const isDown = status['store_up'] === false;
  const why = status['store_reason'];
  // A local store that takes no rows makes the gateway not ready, as a server that is away does.
  if (isDown || (status.ready === false && typeof why === 'string')) {
    return { ...item, state: 'bad', text: typeof why === 'string' ? why : 'store unreachable' };
  }
  return status.ready === false
    ? { ...item, state: 'warn', text: 'not ready' }
    : { ...item, state: 'good', text: 'ready, store writable' };
}
