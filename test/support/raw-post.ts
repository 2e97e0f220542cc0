/** A POST whose every header is written by the test. */
import { clientKey } from './keys.ts';
import { sendRaw } from './http.ts';
import type { ClientDialect } from './dialects.ts';
import { endpointOf } from './requests.ts';

export interface RawPost {
  readonly dialect: ClientDialect;
  readonly body: string;
  readonly contentType: string | undefined;
  /** Header lines besides, without line ends. */
  readonly lines?: readonly string[];
  /** Instead of the usual `Authorization` line. */
  readonly auth?: readonly string[];
}

/** Sends it on a connection of its own and gives everything that came back. */
export function rawPost(url: string, post: RawPost): Promise<string> {
  const lines = [
    `POST ${endpointOf[post.dialect]} HTTP/1.1`,
    'Host: gateway',
    'Connection: close',
    ...(post.auth ?? [`Authorization: Bearer ${clientKey}`]),
    ...(post.contentType === undefined ? [] : [`Content-Type: ${post.contentType}`]),
    `Content-Length: ${Buffer.byteLength(post.body)}`,
    ...(post.lines ?? []),
  ];
  return sendRaw(url, `${lines.join('\r\n')}\r\n\r\n${post.body}`);
}
