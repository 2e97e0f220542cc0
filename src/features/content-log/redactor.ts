/** Redacts the content of calls: removes keys, credentials and media data. */
import { isObject, type Json, type JsonObject } from '../../json/value.ts';
import { withoutKeys } from '../../core/secret.ts';
import { valueMask } from '../../gateway/mask-credentials.ts';

/** Shorter ones are ids and signatures as much as media. */
const leastMedia = 512;
const onlyBase64 = /^[\w+/=-]+$/;
const base64Run = /[\w+/=-]*/y;
const dataMark = ';base64,';
/** Length before the mark that is searched for `data:` and the media type. */
const maxTypeLength = 200;

export class Redactor {
  readonly #withoutValues: (text: string) => string;
  #found = false;

  /** @param secrets flat headers whose values are taken out wherever they stand */
  constructor(secrets: readonly string[]) {
    this.#withoutValues = valueMask(secrets);
  }

  /** Whether anything so far had a key or a credential in it. */
  get found(): boolean {
    return this.#found;
  }

  text(text: string): string {
    const open = withoutDataAddresses(text);
    const shown = withoutKeys(this.#withoutValues(open));
    this.#found ||= shown !== open;
    return shown;
  }

  /** @param near sibling members, which may hold the media type */
  json(value: Json, near?: JsonObject): Json {
    if (typeof value === 'string') return mediaText(value, near) ?? this.text(value);
    if (Array.isArray(value)) return value.map((each: Json) => this.json(each, near));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        this.text(name),
        this.json(member ?? null, value),
      ]),
    );
  }
}

/** What stands for a text that is nothing but encoded bytes; undefined for any other. */
function mediaText(text: string, near: JsonObject | undefined): string | undefined {
  if (text.length < leastMedia || !onlyBase64.test(text)) return undefined;
  const type = near?.['media_type'] ?? near?.['mime_type'] ?? near?.['format'];
  return leftOut(typeof type === 'string' ? type : '', text.length);
}

function leftOut(type: string, length: number): string {
  const bytes = Math.floor((length * 3) / 4);
  return `[${type === '' ? 'base64' : type}, ${bytes} bytes left out]`;
}

/** `data:image/png;base64,…` anywhere in a text becomes its type and size. */
function withoutDataAddresses(text: string): string {
  let shown = '';
  let done = 0;
  for (;;) {
    const mark = text.indexOf(dataMark, done);
    if (mark === -1) return done === 0 ? text : shown + text.slice(done);
    const head = text.slice(Math.max(done, mark - maxTypeLength), mark);
    const begin = head.lastIndexOf('data:');
    base64Run.lastIndex = mark + dataMark.length;
    const run = base64Run.exec(text)?.[0] ?? '';
    const end = mark + dataMark.length + run.length;
    if (begin === -1) shown += text.slice(done, end);
    else {
      const [type = ''] = head.slice(begin + 'data:'.length).split(';');
      shown += text.slice(done, mark - head.length + begin) + leftOut(type, run.length);
    }
    done = end;
  }
}
