/** Text of a model, formatted. It becomes elements of React and never markup: HTML in it is text (S12). */
import { useMemo, type ReactElement } from 'react';
import { CodeBlock } from '../code-block.tsx';
import { blocksOf, type Block, type ListBlock, type TableBlock } from './blocks.ts';
import { inlineOf, type Inline } from './inline.ts';
import styles from './markdown.module.css';

export function Markdown({ text }: { readonly text: string }): ReactElement {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return (
    <div className={styles.markdown} dir="auto">
      <Blocks blocks={blocks} />
    </div>
  );
}

/** Text only grows at its end: the place of a block is its key. */
function Blocks({ blocks }: { readonly blocks: readonly Block[] }): ReactElement {
  return (
    <>
      {blocks.map((block, index) => (
        <BlockView key={`${index}-${block.kind}`} block={block} />
      ))}
    </>
  );
}

function BlockView({ block }: { readonly block: Block }): ReactElement {
  switch (block.kind) {
    case 'heading':
      return (
        <h4 className={styles.heading} data-level={block.level}>
          <InlineText text={block.text} />
        </h4>
      );
    case 'paragraph':
      return (
        <p>
          <InlineText text={block.text} />
        </p>
      );
    case 'code':
      return (
        <CodeBlock
          label={block.language === '' ? 'Code' : `Code: ${block.language}`}
          text={block.text}
        />
      );
    case 'quote':
      return (
        <blockquote>
          <Blocks blocks={block.blocks} />
        </blockquote>
      );
    case 'list':
      return <ListView list={block} />;
    case 'table':
      return <TableView table={block} />;
    case 'rule':
      return <hr />;
  }
}

function ListView({ list }: { readonly list: ListBlock }): ReactElement {
  const items = list.items.map((blocks, index) => (
    // Items have no names of their own.
    <li key={String(index)}>
      <Blocks blocks={blocks} />
    </li>
  ));
  return list.start === undefined ? <ul>{items}</ul> : <ol start={list.start}>{items}</ol>;
}

function TableView({ table }: { readonly table: TableBlock }): ReactElement {
  const { head, rows, align } = table;
  return (
    // It scrolls, so the keyboard must reach it.
    <div className={styles.table} tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>
            {head.map((text, column) => (
              <th key={String(column)} scope="col" data-align={align[column]}>
                <InlineText text={text} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={String(row)}>
              {cells.map((text, column) => (
                <td key={String(column)} data-align={align[column]}>
                  <InlineText text={text} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function InlineText({ text }: { readonly text: string }): ReactElement {
  const nodes = useMemo(() => inlineOf(text), [text]);
  return <InlineNodes nodes={nodes} />;
}

function InlineNodes({ nodes }: { readonly nodes: readonly Inline[] }): ReactElement {
  return (
    <>
      {nodes.map((node, index) => (
        <InlineView key={`${index}-${node.kind}`} node={node} />
      ))}
    </>
  );
}

function InlineView({ node }: { readonly node: Inline }): ReactElement {
  switch (node.kind) {
    case 'text':
      return <>{node.text}</>;
    case 'code':
      return <code>{node.text}</code>;
    case 'strong':
      return (
        <strong>
          <InlineNodes nodes={node.children} />
        </strong>
      );
    case 'emphasis':
      return (
        <em>
          <InlineNodes nodes={node.children} />
        </em>
      );
    case 'deleted':
      return (
        <del>
          <InlineNodes nodes={node.children} />
        </del>
      );
    case 'link':
      return <LinkView address={node.address} nodes={node.children} />;
  }
}

interface LinkViewProps {
  readonly address: string;
  readonly nodes: readonly Inline[];
}

/** A model may be told to mislead: where a link leads is behind it. */
function LinkView({ address, nodes }: LinkViewProps): ReactElement {
  const { host, pathname } = new URL(address);
  const [only] = nodes;
  const isSeen = nodes.length === 1 && only?.kind === 'text' && only.text === address;
  return (
    <>
      <a href={address} target="_blank" rel="noopener noreferrer nofollow" title={address}>
        <InlineNodes nodes={nodes} />
      </a>
      {isSeen ? null : <span className={styles.host}> ({host === '' ? pathname : host})</span>}
    </>
  );
}
