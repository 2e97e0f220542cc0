/** S12: Markdown of models is read into blocks and nodes; HTML and unsafe addresses stay text. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { blocksOf, type Block } from '../../../dashboard/src/components/markdown/blocks.ts';
import { inlineOf, type Inline } from '../../../dashboard/src/components/markdown/inline.ts';
import { oddText, xss } from '../../dashboard/names.ts';

/** Short form: tags with their text. */
function inlineText(nodes: readonly Inline[]): string {
  return nodes
    .map((node) => {
      switch (node.kind) {
        case 'text':
          return node.text;
        case 'code':
          return `<code>${node.text}</code>`;
        case 'link':
          return `<a ${node.address}>${inlineText(node.children)}</a>`;
        default:
          return `<${node.kind}>${inlineText(node.children)}</${node.kind}>`;
      }
    })
    .join('');
}

function plainText(node: Inline): string {
  return 'children' in node ? node.children.map(plainText).join('') : node.text;
}

function blockText(block: Block): string {
  switch (block.kind) {
    case 'heading':
      return `h${block.level}(${block.text})`;
    case 'paragraph':
      return `p(${block.text})`;
    case 'code':
      return `code[${block.language}](${block.text})`;
    case 'quote':
      return `quote(${block.blocks.map(blockText).join(' ')})`;
    case 'list':
      return `list[${block.start ?? '-'}](${block.items
        .map((item) => item.map(blockText).join(' '))
        .join(', ')})`;
    case 'table':
      return `table(${[block.head, block.align, ...block.rows].map((row) => row.join('|')).join(' ')})`;
    case 'rule':
      return 'rule';
  }
}

describe('blocks', () => {
  const cases: readonly (readonly [markdown: string, blocks: string])[] = [
    ['', ''],
    ['one\ntwo\n\nthree', 'p(one\ntwo) p(three)'],
    ['# A\n### B ##\n#no', 'h1(A) h3(B) p(#no)'],
    ['a\n---\nb', 'p(a) rule p(b)'],
    ['```js\nlet a = 1;\n\n  b\n```\nafter', 'code[js](let a = 1;\n\n  b) p(after)'],
    ['````\n```\n````', 'code[](```)'],
    ['```py\nstill comes', 'code[py](still comes)'],
    ['> a\n> > b\nc', 'quote(p(a) quote(p(b))) p(c)'],
    ['- a\n- b\n  - c\n- d', 'list[-](p(a), p(b) list[-](p(c)), p(d))'],
    ['1. a\n   more\n2. b\n  - c', 'list[1](p(a\nmore), p(b) list[-](p(c)))'],
    ['3) a\n\n4) b\n\nend', 'list[3](p(a), p(b)) p(end)'],
    ['- a\n1. b', 'list[-](p(a)) list[1](p(b))'],
    ['1. a\n   ```sh\n   ls\n   ```', 'list[1](p(a) code[sh](ls))'],
    ['so:\n- a', 'p(so:) list[-](p(a))'],
    ['in\n2024. It was', 'p(in\n2024. It was)'],
    ['x\n| a | b |\n|:-:|--:|\n| 1 | `c` |\n| 2 |', 'p(x) table(a|b center|right 1|`c` 2|)'],
    ['a | b', 'p(a | b)'],
    ['<b>x</b>\n<script>', 'p(<b>x</b>\n<script>)'],
    ['***', 'rule'],
    ['a\r\nb', 'p(a\nb)'],
  ];
  for (const [markdown, expected] of cases) {
    test(JSON.stringify(markdown), () => {
      assert.equal(blocksOf(markdown).map(blockText).join(' '), expected);
    });
  }
});

describe('inline', () => {
  const cases: readonly (readonly [markdown: string, nodes: string])[] = [
    [
      'a **b** *c* _d_ ~~e~~',
      'a <strong>b</strong> <emphasis>c</emphasis> <emphasis>d</emphasis> <deleted>e</deleted>',
    ],
    ['***a***', '<emphasis><strong>a</strong></emphasis>'],
    ['**a *b* c**', '<strong>a <emphasis>b</emphasis> c</strong>'],
    ['2 * 3 * 4, snake_case_name, a ~ b', '2 * 3 * 4, snake_case_name, a ~ b'],
    ['`a*b*` ``c`d`` `open', '<code>a*b*</code> <code>c`d</code> `open'],
    [String.raw`\*a\* \n`, String.raw`*a* \n`],
    ['**open and *open', '**open and *open'],
    ['[a **b**](https://x.example/p "t")', '<a https://x.example/p>a <strong>b</strong></a>'],
    ['see https://x.example/a?b=1.', 'see <a https://x.example/a?b=1>https://x.example/a?b=1</a>.'],
    ['[a](mailto:a@b.example)', '<a mailto:a@b.example>a</a>'],
    ['[a](javascript:alert(1))', '[a](javascript:alert(1))'],
    ['[a](JaVaScRiPt:x) [b](data:text/html,x)', '[a](JaVaScRiPt:x) [b](data:text/html,x)'],
    ['[a](/calls) [b]', '[a](/calls) [b]'],
    ['![x](https://tracker.example/p.png)', '![x](https://tracker.example/p.png)'],
    ['<b onclick=x>', '<b onclick=x>'],
  ];
  for (const [markdown, expected] of cases) {
    test(markdown, () => assert.equal(inlineText(inlineOf(markdown)), expected));
  }

  test('S12 the corpus is text, whole, and links lead to the web only', () => {
    for (const text of [...xss('inline'), oddText]) {
      const nodes = inlineOf(text);
      const links = nodes.filter((node) => node.kind === 'link');
      for (const { address } of links) assert.match(address, /^https:\/\//);
      assert.equal(nodes.map(plainText).join(''), text);
    }
  });

  test('what is nested without end, or never closed, is read in linear time and stays shallow', () => {
    const depthOf = (nodes: readonly Inline[]): number =>
      nodes.reduce(
        (most, node) => Math.max(most, 'children' in node ? 1 + depthOf(node.children) : 0),
        0,
      );
    const count = 40_000;
    for (const part of [
      '*a ',
      '[',
      '`',
      '**a _b ',
      '[a](',
      '> ',
      '- ',
      '![',
      'http://',
      '~~',
      '\\',
      '|',
    ]) {
      const text = part.repeat(count);
      const began = performance.now();
      for (const block of blocksOf(text)) if ('text' in block) inlineOf(block.text);
      assert.ok(depthOf(inlineOf(`${text}${'a* '.repeat(count)}`)) <= 20, part);
      // Quadratic work of this size takes longer.
      assert.ok(performance.now() - began < 20_000, part);
    }
  });
});
