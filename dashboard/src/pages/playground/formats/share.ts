/** A snapshot in the fragment of an address, which browsers do not send to servers. */
import { readSnapshot, type Snapshot } from './snapshot.ts';

const prefix = '#share=';

/** Characters of an address. Chats and mail programs cut or refuse longer ones. */
export const maxLink = 16_000;
/** Characters of a snapshot that is read from a link; what is compressed may be a bomb. */
const maxText = 2_000_000;

/** @returns the fragment with its `#` */
export async function shareFragment(snapshot: Snapshot): Promise<string> {
  const packed = new Blob([JSON.stringify(snapshot)])
    .stream()
    .pipeThrough(new CompressionStream('deflate-raw'));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  const base64 = btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return prefix + base64;
}

export function isShared(fragment: string): boolean {
  return fragment.startsWith(prefix);
}

/** Undefined: it is damaged, or of no playground. */
export async function readFragment(fragment: string): Promise<Snapshot | undefined> {
  try {
    const base64 = fragment.slice(prefix.length).replaceAll('-', '+').replaceAll('_', '/');
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return readSnapshot(JSON.parse(await unpacked(bytes)));
  } catch {
    return undefined;
  }
}

/** @throws Error where it is not compressed, or too long */
async function unpacked(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const reader = new Blob([bytes])
    .stream()
    .pipeThrough(new DecompressionStream('deflate-raw'))
    .pipeThrough(new TextDecoderStream())
    .getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return text;
    text += value;
    if (text.length > maxText) {
      await reader.cancel();
      throw new Error('The link is too long.');
    }
  }
}
