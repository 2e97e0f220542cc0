/** One event of a messages stream. The official client dispatches on the `event:` line. */
import type { JsonObject } from '../../core/conversation.ts';

export function eventFrame(name: string, data: JsonObject): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
