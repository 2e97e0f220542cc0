/** Small changes of a source file: an operator, a condition, a constant, a result, a call omitted. */
import { parseAst } from 'vite';

const operators = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '&&': '||',
  '||': '&&',
};

/** All places of a file that can be changed: offsets, and the text that takes the place of theirs. */
export function candidatesOf(path, text) {
  const found = [];
  const add = (kind, node, becomes) => {
    const { start, end } = node;
    const was = text.slice(start, end);
    const line = text.slice(0, start).split('\n').length;
    const description = `${path}:${line} ${kind}: ${short(was)} → ${short(becomes)}`;
    found.push({ id: `${path}:${start}:${kind}`, path, start, end, becomes, description });
  };
  const visit = (node) => {
    if (node === null || typeof node !== 'object') return;
    if (Array.isArray(node)) return node.forEach(visit);
    if (typeof node.type === 'string') {
      if (
        /^(TS|Import|Export.*All)/.test(node.type) &&
        !/^TS(As|NonNull|Satisfies)/.test(node.type)
      )
        return;
      changes[node.type]?.(node, text, add);
    }
    for (const [key, child] of Object.entries(node)) if (key !== 'typeAnnotation') visit(child);
  };
  visit(parseAst(text, { lang: 'ts' }));
  return found;
}

function changeOperator({ operator, left, right }, text, add) {
  const becomes = operators[operator];
  const start = text.indexOf(operator, left.end);
  if (becomes === undefined || start === -1 || start >= right.start) return;
  add('operator', { start, end: start + operator.length }, becomes);
}

function negate({ test }, text, add) {
  add('condition', test, `!(${text.slice(test.start, test.end)})`);
}

/** What a node of a type can become. */
const changes = {
  BinaryExpression: changeOperator,
  LogicalExpression: changeOperator,
  IfStatement: negate,
  ConditionalExpression: negate,
  Literal: (node, _text, add) => {
    if (typeof node.value === 'number') add('constant', node, String(node.value + 1));
    if (typeof node.value === 'boolean') add('constant', node, String(!node.value));
  },
  ReturnStatement: ({ argument }, _text, add) => {
    // Numbers and booleans change as constants.
    const isPlain = argument?.type === 'Literal' || argument?.name === 'undefined';
    if (argument !== null && !isPlain) add('result', argument, 'undefined');
  },
  ExpressionStatement: ({ expression }, _text, add) => {
    const isCall = expression.type === 'CallExpression' && expression.callee.type !== 'Super';
    if (isCall) add('call', expression, 'undefined');
  },
};

function short(text) {
  const line = text.replace(/\s+/g, ' ');
  return line.length > 60 ? `${line.slice(0, 57)}…` : line;
}

/** Random numbers below 1, the same for a seed everywhere. */
export function mulberry(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export function shuffled(list, random) {
  const mixed = [...list];
  for (let i = mixed.length - 1; i > 0; i -= 1) {
    const other = Math.floor(random() * (i + 1));
    [mixed[i], mixed[other]] = [mixed[other], mixed[i]];
  }
  return mixed;
}
