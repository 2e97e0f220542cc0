/** What calls said, in memory: it ends with the process. */
import {
  contentBytes,
  enough,
  type ContentStore,
  type ContentToRemove,
  type RemovedContent,
  type SealedContent,
} from './contents.ts';

export class MemoryContents implements ContentStore {
  readonly #contents = new Map<string, SealedContent>();
  /** By key: calls that began before are forgotten. */
  readonly #forgotten = new Map<string, number>();

  async keep(contents: readonly SealedContent[]): Promise<void> {
    for (const content of contents) {
      const { id, keyId, startedAt } = content;
      if (startedAt < (this.#forgotten.get(keyId) ?? -Infinity)) continue;
      if (!this.#contents.has(id)) this.#contents.set(id, content);
    }
  }

  async find(id: string): Promise<SealedContent | undefined> {
    return this.#contents.get(id);
  }

  async bytes(): Promise<number> {
    return [...this.#contents.values()].reduce((sum, content) => sum + contentBytes(content), 0);
  }

  async remove(
    { keyId, before = Infinity, bytes }: ContentToRemove,
    most: number,
  ): Promise<RemovedContent> {
    const fitting = [...this.#contents.values()]
      .filter((content) => keyId === undefined || content.keyId === keyId)
      .filter(({ startedAt }) => startedAt < before)
      .toSorted((a, b) => a.startedAt - b.startedAt)
      .slice(0, most);
    const removed = enough(fitting.map(contentBytes), bytes);
    for (const { id } of fitting.slice(0, removed.rows)) this.#contents.delete(id);
    return removed;
  }

  async forget(keyId: string, before: number): Promise<void> {
    this.#forgotten.set(keyId, Math.max(before, this.#forgotten.get(keyId) ?? -Infinity));
  }
}
