/**
 * The walk over a body's bytes, for WebAssembly: sixteen bytes of a string at a time, which a loop in JavaScript
 * cannot. It takes less than JSON allows, and says of all else that it is odd: what it takes is JSON, no key
 * stands twice in an object or is written with an escape, and every number is what a double holds exactly enough.
 *
 * What it writes is the outline: the text without what makes bodies long (see `json-outline.ts`).
 */
import { maxBytesAtOnce as longestText, maxDepth, maxKeyLength } from '../json-bytes.ts';
import { bitOf, marks, type Mark } from '../json-marks.ts';
import {
  add,
  and,
  both,
  block,
  byteAt,
  char,
  copyBytes,
  either,
  eq,
  ge,
  giveBack,
  gt,
  leave,
  loop,
  lt,
  moduleOf,
  ne,
  not,
  num,
  or,
  putWord,
  shl,
  sixteen,
  sub,
  trailingZeros,
  Variables,
  when,
  wordAt,
  type Code,
} from './assembler.ts';

/** More members on the top level are odd. */
export const mostMembers = 64;
/** Zeros that must stand behind the text. */
export const sentinelBytes = 32;

/** Where what lies in the memory. */
export const places = {
  /** Written last: tokens, top-level members, offset behind the first brace. */
  tokens: 0,
  members: 4,
  bodyStart: 8,
  /** The bits of the marks that were met (`json-marks.ts`). */
  marks: 12,
  /** Four numbers each: start and length of the key, start and end of the value. */
  memberTable: 1024,
  frames: 2048,
  keys: 4096,
  text: 128 * 1024,
  outline: 128 * 1024 + longestText + sentinelBytes,
} as const;

const mostKeys = 64;
/** Comparing keys takes no more steps than so many bytes: keys may be made so that each is like all others. */
const mostCompared = 256 * 1024;
/** Digits, sign and point: what has more may lose some in a double. */
const longestNumber = 15;
/** A shorter text is not worth being left out. */
const longText = 64;
const odd = giveBack(num(-1));

const vars = new Variables(
  'length',
  'at',
  'end',
  'byte',
  'bits',
  'start',
  'depth',
  'tokens',
  'isObject',
  'expectsKey',
  'keyStart',
  'keyLength',
  'firstKey',
  'keysEnd',
  'other',
  'same',
  'compared',
  'members',
  'list',
  'cutDepth',
  'cutStart',
  'copied',
  'marks',
  'tail',
  'out',
);
const get = (name: string): Code => vars.get(name);
const at = get('at');
const byte = get('byte');
const here = byteAt(at);
const forward = (bytes: number): Code => vars.add('at', bytes);
const look = vars.set('byte', here);
const quote = char('"');
const backslash = char('\\');

/** `list`: which of the two long members of the top level the walk is in. */
const none = 0;
const inMessages = 1;
const inTools = 2;

const isSpace = or(
  or(eq(here, num(0x20)), eq(here, num(0x0a))),
  or(eq(here, num(0x0d)), eq(here, num(0x09))),
);
const skipSpace = block(
  'text',
  loop('space', leave('text', gt(here, num(0x20))), when(isSpace, forward(1), leave('space'))),
);

function isDigit(code: Code): Code {
  return lt(sub(code, char('0')), num(10));
}

function isHexDigit(code: Code): Code {
  return or(isDigit(code), lt(sub(or(code, num(0x20)), char('a')), num(6)));
}

function isOneOf(code: Code, characters: string): Code {
  return [...characters].map((each) => eq(code, char(each))).reduce(or);
}

/** Whether four bytes and more are these. @param characters at least four. */
function stands(address: Code, characters: string): Code {
  const bytes = Buffer.from(characters);
  const offsets = [];
  for (let offset = 0; offset + 4 < bytes.length; offset += 4) offsets.push(offset);
  offsets.push(bytes.length - 4);
  return offsets
    .map((offset) => eq(wordAt(address, offset), num(bytes.readInt32LE(offset))))
    .reduce(and);
}

function keyIs(name: string): Code {
  return both(eq(get('keyLength'), num(name.length)), stands(get('keyStart'), name));
}

/** From behind a string's quote to its closing one. @param onEscape what becomes of a backslash. */
function toClosingQuote(onEscape: readonly Code[]): Code {
  return loop(
    'characters',
    vars.set('bits', sixteen(at, [0x22, 0x5c], 0x20)),
    when(not(get('bits')), forward(16), leave('characters')),
    vars.set('at', add(at, trailingZeros(get('bits')))),
    look,
    when(ne(byte, quote), when(ne(byte, backslash), odd), ...onEscape),
  );
}

function met(mark: Mark): Code {
  return vars.set('marks', or(get('marks'), num(bitOf[mark])));
}

const escapeStart = marks.escape[0];
const passEscape: readonly Code[] = [
  vars.set('byte', byteAt(at, 1)),
  // As it is written: also where the backslash is itself an escaped one.
  when(or(stands(at, escapeStart), stands(add(at, num(1)), escapeStart)), met('escape')),
  when(stands(add(at, num(1)), marks.sealed[0]), met('sealed')),
  either(
    eq(byte, char('u')),
    [...[2, 3, 4, 5].map((offset) => when(not(isHexDigit(byteAt(at, offset))), odd)), forward(6)],
    [when(not(isOneOf(byte, '"\\/bfnrt')), odd), forward(2)],
  ),
  leave('characters'),
];

/** What is written in quotes, and how its last three characters and the quote are read as one number. */
const closedMarks = (['media', 'cacheControl', 'hour'] as const).flatMap((mark) =>
  marks[mark].map((text) => ({ mark, text, tail: Buffer.from(text).readInt32LE(text.length - 4) })),
);
/** A bit for each last letter: most texts end in another. */
const lastLetters = closedMarks
  .map(({ text }) => 1 << (text.charCodeAt(text.length - 2) & 31))
  .reduce((bits, bit) => bits | bit);

/** At a closing quote: a mark ends there, whatever its first quote is. */
const seeMarks = when(
  and(shl(num(1), and(byteAt(sub(at, num(1))), num(31))), num(lastLetters)),
  vars.set('tail', wordAt(sub(at, num(3)))),
  ...[...Map.groupBy(closedMarks, ({ tail }) => tail)].map(([tail, alike]) =>
    when(
      eq(get('tail'), num(tail)),
      ...alike.map(({ mark, text }) =>
        when(stands(sub(at, num(text.length - 1)), text), met(mark)),
      ),
    ),
  ),
);

/** At an opening quote: the one mark that is the beginning of a text. */
const seeSeal = when(stands(at, marks.sealed[0]), met('sealed'));

/** No key may be another's twin: a server that takes the first of two would be asked for another model. */
const compareKeys = [
  vars.set('other', get('firstKey')),
  block(
    'unique',
    loop(
      'keys',
      leave('unique', ge(get('other'), get('keysEnd'))),
      when(
        eq(wordAt(get('other'), 4), get('keyLength')),
        vars.set('same', num(0)),
        block(
          'differ',
          loop(
            'bytes',
            when(ge(get('same'), get('keyLength')), odd),
            leave(
              'differ',
              ne(
                byteAt(add(get('keyStart'), get('same'))),
                byteAt(add(wordAt(get('other')), get('same'))),
              ),
            ),
            vars.add('compared', 1),
            vars.add('same', 1),
            leave('bytes'),
          ),
        ),
      ),
      vars.add('other', 8),
      leave('keys'),
    ),
  ),
  when(ge(sub(get('keysEnd'), get('firstKey')), num(8 * mostKeys)), odd),
  when(gt(get('compared'), num(mostCompared)), odd),
  putWord(get('keysEnd'), get('keyStart')),
  putWord(get('keysEnd'), get('keyLength'), 4),
  vars.add('keysEnd', 8),
];

function memberAt(index: Code): Code {
  return add(num(places.memberTable), shl(index, num(4)));
}

const beginMember = [
  when(ge(get('members'), num(mostMembers)), odd),
  putWord(memberAt(get('members')), sub(get('keyStart'), num(places.text))),
  putWord(memberAt(get('members')), get('keyLength'), 4),
  putWord(memberAt(get('members')), sub(at, num(places.text)), 8),
  vars.add('members', 1),
  vars.set('list', num(none)),
  when(keyIs('messages'), vars.set('list', num(inMessages))),
  when(keyIs('tools'), vars.set('list', num(inTools))),
];

/** `start` is the end of its value. */
const endMember = when(
  both(eq(get('depth'), num(1)), get('members')),
  putWord(memberAt(sub(get('members'), num(1))), sub(get('start'), num(places.text)), 12),
);

const passKey = [
  when(ne(here, quote), odd),
  seeSeal,
  forward(1),
  vars.set('keyStart', at),
  toClosingQuote([odd]),
  seeMarks,
  vars.set('keyLength', sub(at, get('keyStart'))),
  when(gt(get('keyLength'), num(maxKeyLength)), odd),
  forward(1),
  ...compareKeys,
  skipSpace,
  when(ne(here, char(':')), odd),
  forward(1),
  vars.add('tokens', 1),
  skipSpace,
  when(eq(get('depth'), num(1)), ...beginMember),
];

/** Copies what was not copied, up to an offset. */
function copyUpTo(offset: Code): readonly Code[] {
  return [
    copyBytes(get('out'), get('copied'), sub(offset, get('copied'))),
    vars.set('out', add(get('out'), sub(offset, get('copied')))),
  ];
}

/** In an object of one of the two lists, and in nothing that is left out as a whole. */
const mayCut = both(both(get('list'), not(get('cutDepth'))), get('isObject'));
const isTextMember = both(
  ge(get('depth'), num(3)),
  ['content', 'text', 'arguments', 'description', 'thinking'].map(keyIs).reduce(or),
);
const isInnerMember = or(
  or(
    both(ge(get('depth'), num(4)), keyIs('parameters')),
    both(ge(get('depth'), num(3)), keyIs('input_schema')),
  ),
  both(ge(get('depth'), num(5)), keyIs('input')),
);

const passString = [
  seeSeal,
  forward(1),
  toClosingQuote(passEscape),
  seeMarks,
  forward(1),
  when(
    both(both(mayCut, ge(sub(at, get('start')), num(longText))), isTextMember),
    ...copyUpTo(get('start')),
    // Of one letter: V8 has a string for each of them, and looks for a longer one in its table. Of the four bytes
    // the last is written over by what follows.
    putWord(get('out'), num(Buffer.from('"~" ').readInt32LE())),
    vars.add('out', 3),
    vars.set('copied', at),
  ),
];

function frame(): Code {
  return add(num(places.frames), shl(get('depth'), num(3)));
}

/** Goes to `value` for what stands in it first, or to `ended` where it is empty. */
const openContainer = [
  vars.add('tokens', 1),
  when(ge(get('depth'), num(maxDepth)), odd),
  when(
    both(mayCut, isInnerMember),
    vars.set('cutDepth', add(get('depth'), num(1))),
    vars.set('cutStart', at),
  ),
  putWord(frame(), get('firstKey')),
  putWord(frame(), get('isObject'), 4),
  vars.add('depth', 1),
  vars.set('firstKey', get('keysEnd')),
  vars.set('isObject', eq(byte, char('{'))),
  forward(1),
  skipSpace,
  // The brackets that close stand two behind those that open.
  leave('ended', eq(here, add(byte, num(2)))),
  vars.set('expectsKey', get('isObject')),
  leave('value'),
];

/** `byte` is the bracket. */
const closeContainer = [
  forward(1),
  when(
    eq(get('cutDepth'), get('depth')),
    ...copyUpTo(get('cutStart')),
    putWord(get('out'), or(sub(byte, num(2)), shl(byte, num(8)))),
    vars.add('out', 2),
    vars.set('copied', at),
    vars.set('cutDepth', num(0)),
  ),
  vars.add('depth', -1),
  vars.set('keysEnd', get('firstKey')),
  vars.set('firstKey', wordAt(frame())),
  vars.set('isObject', wordAt(frame(), 4)),
];

function passWord(word: string): Code {
  return when(stands(at, word), forward(word.length), leave('ended'));
}

const passDigits = [
  when(not(isDigit(here)), odd),
  loop('digits', forward(1), leave('digits', isDigit(here))),
];

const passNumber = [
  when(eq(here, char('-')), forward(1)),
  either(eq(here, char('0')), [forward(1)], passDigits),
  when(eq(here, char('.')), forward(1), ...passDigits),
  when(eq(or(here, num(0x20)), char('e')), odd),
  when(gt(sub(at, get('start')), num(longestNumber)), odd),
];

const passValue = block(
  'ended',
  when(get('expectsKey'), ...passKey),
  vars.set('start', at),
  look,
  when(eq(byte, quote), ...passString, leave('ended')),
  when(isOneOf(byte, '{['), ...openContainer),
  passWord('true'),
  passWord('false'),
  passWord('null'),
  ...passNumber,
);

const behindValue = loop(
  'behind',
  leave('whole', not(get('depth'))),
  vars.set('start', at),
  skipSpace,
  look,
  endMember,
  when(
    eq(byte, char(',')),
    forward(1),
    vars.add('tokens', 1),
    skipSpace,
    vars.set('expectsKey', get('isObject')),
    leave('value'),
  ),
  when(eq(byte, add(char(']'), shl(get('isObject'), num(5)))), ...closeContainer, leave('behind')),
  odd,
);

/** Exports `run`: from the length of the text to the length of its outline, or -1 where the text is odd. */
export function jsonWalk(): Uint8Array {
  return moduleOf(
    places.outline + longestText + sentinelBytes,
    vars,
    vars.set('at', num(places.text)),
    vars.set('copied', at),
    vars.set('end', add(at, get('length'))),
    vars.set('keysEnd', num(places.keys)),
    vars.set('firstKey', num(places.keys)),
    vars.set('out', num(places.outline)),
    skipSpace,
    when(ne(here, char('{')), odd),
    putWord(num(places.bodyStart), sub(at, num(places.text - 1))),
    block('whole', loop('value', passValue, behindValue)),
    skipSpace,
    when(ne(at, get('end')), odd),
    ...copyUpTo(at),
    putWord(num(places.tokens), get('tokens')),
    putWord(num(places.members), get('members')),
    putWord(num(places.marks), get('marks')),
    sub(get('out'), num(places.outline)),
  );
}
