/**
 * "The prompt does not fit", in the words of any vendor and in the one phrase that agents look for
 * (F11; clients.md §2.10: the numbers are parsed and drive compaction).
 */

const phrases = new RegExp(
  [
    'prompt is too long',
    'prompt (exceeds|is longer than)',
    'maximum context length',
    'context[_ ](length|size|window|limit)[_ ]?(is |was |of |has been )?exceed',
    'exceeds? (the |this )?(model.s |available |maximum )*context',
    'exceed_context_size',
    'context window (of|is) ',
    'input (length )?(is too long|exceeds)',
    'input length and `?max_tokens`? exceed',
    'input token count.{0,100}exceeds',
    'too many (input|prompt) tokens',
    'exceeded model token limit',
    'reduce the length of (the|your) (messages|prompt|input)',
  ].join('|'),
  'i',
);

const asAgentsReadIt = /^prompt is too long/i;
const limitWords =
  /(?:maximum|max\.?|limit|context (?:length|size|window)|n_ctx)[^\d]{0,40}(\d[\d,]{0,20})|(?<!\d)(\d[\d,]{0,20})(?: tokens?)? max/i;
const numbers = /\d[\d,]{2,}/g;

/** Whether an upstream's message or code says that the prompt is too long. */
export function saysOverflow(text: string): boolean {
  return phrases.test(text);
}

/** The message as the native service words it, with its numbers where the upstream told them. */
export function overflowMessage(message: string): string {
  if (asAgentsReadIt.test(message)) return message;
  const limit = readLimit(message);
  const count = limit === undefined ? undefined : readNumbers(message).find((n) => n > limit);
  if (limit === undefined || count === undefined) return `prompt is too long: ${message}`;
  return `prompt is too long: ${count} tokens > ${limit} maximum`;
}

function readLimit(message: string): number | undefined {
  const found = limitWords.exec(message);
  const text = found?.[1] ?? found?.[2];
  return text === undefined ? undefined : toNumber(text);
}

function readNumbers(message: string): readonly number[] {
  return [...message.matchAll(numbers)].map((found) => toNumber(found[0]));
}

function toNumber(text: string): number {
  return Number(text.replaceAll(',', ''));
}
