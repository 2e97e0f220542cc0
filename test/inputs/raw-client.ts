/** A client that counts answers: what comes back on one connection for bytes that are no good HTTP. */
import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  /** Lower-case names; a name that stands twice keeps the last value. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface RawTalk {
  /** Those to the bytes, the probe's not among them. */
  readonly answers: readonly RawAnswer[];
  /** The probe behind them was answered: the connection is of use. */
  readonly usable: boolean;
}

const probePath = '/healthz?raw-probe';
const probe = `GET ${probePath} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n`;

/**
 * Sends the bytes, waits for so many answers, then asks for one more thing and reads until the
 * connection is closed. Nothing is decided by time.
 */
export function talkRaw(url: string, bytes: string | Buffer, expected: number): Promise<RawTalk> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let text = '';
    let probed = false;
    socket.on('error', (error) => (text === '' ? reject(error) : undefined));
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (probed || readAnswers(text).length < expected) return;
      probed = true;
      socket.write(probe);
    });
    socket.on('close', () => {
      const answers = readAnswers(text);
      const last = answers.at(-1);
      const usable = probed && answers.length === expected + 1 && last?.status === 200;
      resolve({ answers: usable ? answers.slice(0, -1) : answers, usable });
    });
    socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  });
}

/** The whole answers in a text, framed by their lengths; 1xx answers are answers too. */
export function readAnswers(text: string): readonly RawAnswer[] {
  const answers: RawAnswer[] = [];
  let at = 0;
  for (;;) {
    const end = text.indexOf('\r\n\r\n', at);
    if (end === -1) return answers;
    const [line = '', ...lines] = text.slice(at, end).split('\r\n');
    const status = /^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1];
    if (status === undefined) throw new Error(`no answer begins with ${line.slice(0, 80)}`);
    const headers = new Map(
      lines.map((each): [string, string] => {
        const colon = each.indexOf(':');
        return [each.slice(0, colon).toLowerCase(), each.slice(colon + 1).trim()];
      }),
    );
    const from = end + 4;
    const length = Number(headers.get('content-length') ?? 0);
    if (text.length < from + length) return answers;
    const body = Buffer.from(text.slice(from, from + length), 'latin1').toString('utf8');
    answers.push({ status: Number(status), headers, body });
    at = from + length;
  }
}
