/** The official SDKs as judges of a stream that never saw a network. */
import type { Dialect, Seen } from '../support/reading.ts';
import { sdks } from '../support/sdks.ts';

/** What the stream helper of each SDK of the dialect makes of a stream. */
export function judge(
  dialect: Dialect,
  stream: string,
  how: { readonly oddFrames?: true } = {},
): Promise<readonly { readonly name: string; readonly seen: Seen }[]> {
  const fetch = (): Promise<Response> =>
    Promise.resolve(
      new Response(stream, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } }),
    );
  return Promise.all(
    sdks
      .filter((sdk) => sdk.dialect === dialect)
      .map(async ({ name, connect }) => {
        const client = connect({ url: 'http://127.0.0.1:9', fetch, ...how });
        return { name, seen: await client.final({ model: 'model', text: 'Hi' }) };
      }),
  );
}
