/** S22: text that a model writes for ever costs its length, not the square of it, in whatever pieces it comes. */
import { test } from 'node:test';
import {
  ReasoningScanner,
  ToolScanner,
  callOpening,
  readXmlCall,
} from '../../../src/engine/scanners.ts';
import { assertLinear } from '../../support/linear.ts';

const nothing = (): undefined => undefined;

function reasoning(begun: string): (size: number, piece: string) => void {
  return (size, piece) => {
    const tags = { open: '<think>', close: '</think>' };
    const scanner = new ReasoningScanner(tags, false, { reasoning: nothing, content: nothing });
    scanner.push(begun);
    for (let i = 0; i < size; i += 1) scanner.push(piece);
    scanner.push('x');
    scanner.end();
  };
}

function calls(begun: string): (size: number, piece: string) => void {
  return (size, piece) => {
    const scanner = new ToolScanner(
      { names: new Set(['f']), holdsForm: () => false, callEnded: nothing },
      { text: nothing, call: nothing, callArguments: nothing },
    );
    scanner.push(begun);
    for (let i = 0; i < size; i += 1) scanner.push(piece);
    scanner.push('x');
    scanner.end();
  };
}

const streams: {
  readonly [name: string]: readonly [(size: number, piece: string) => void, string];
} = {
  'white space before reasoning': [reasoning(''), '\n'],
  'white space in reasoning': [reasoning('<think>a'), ' \n'],
  'half closing tags in reasoning': [reasoning('<think>a'), '</think'],
  'white space behind reasoning': [reasoning('<think>a</think>'), '\t'],
  'white space in an answer': [calls('a'), ' \n'],
  'half tags in an answer': [calls('a'), '<tool_call'],
  'a call without an end': [calls(`${callOpening}{"name": "f", "arguments": {"a": "`), 'word '],
  'half closing tags in a call': [calls(callOpening), '</tool_call'],
};

for (const [name, [run, piece]] of Object.entries(streams)) {
  test(`S22 ${name}`, () => assertLinear((size) => run(size, piece)));
}

const texts: { readonly [name: string]: (size: number) => string } = {
  'white space in a call by elements': (size) => `<function=f>${' '.repeat(size)}x`,
  'closing tags in a value': (size) => `<function=f><parameter=a>${'</parameter>x'.repeat(size)}`,
  'parameters without an end': (size) => `<function=f>${'<parameter=a>\n'.repeat(size)}`,
  'line ends in a value': (size) => `<function=f><parameter=a>${'\n'.repeat(size)}`,
};

for (const [name, text] of Object.entries(texts)) {
  test(`S22 ${name}`, () => assertLinear((size) => readXmlCall(text(size), nothing)));
}
