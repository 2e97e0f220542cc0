/** A store whose operations all go one way: to another process, or past somebody who wants to know of them. */
import type { AnswerStore, Store } from '../store/store.ts';

/** What a store does, without what only its owner does. */
export type StoreOperations = Omit<Store, 'answers' | 'contents' | 'close'>;

type Method = (...args: never[]) => Promise<unknown>;

/** How an operation is done, whichever it is. */
export type Way<T extends { readonly [K in keyof T]: Method }> = <K extends keyof T & string>(
  op: K,
) => (...args: Parameters<T[K]>) => Promise<Awaited<ReturnType<T[K]>>>;

export function storeOf(
  way: Way<StoreOperations>,
  rest: Pick<Store, 'answers' | 'contents' | 'close'>,
): Store {
  return {
    ...rest,
    listKeys: way('listKeys'),
    addKey: way('addKey'),
    replaceKey: way('replaceKey'),
    revokeKey: way('revokeKey'),
    touchKeys: way('touchKeys'),
    keysSince: way('keysSince'),
    listPolicies: way('listPolicies'),
    putPolicy: way('putPolicy'),
    deletePolicy: way('deletePolicy'),
    appendAudit: way('appendAudit'),
    changeNoted: way('changeNoted'),
    listAudit: way('listAudit'),
    recordCalls: way('recordCalls'),
    openCalls: way('openCalls'),
    settleOrphans: way('settleOrphans'),
    spent: way('spent'),
    spentPage: way('spentPage'),
    usage: way('usage'),
    series: way('series'),
    sampleLatency: way('sampleLatency'),
    listCalls: way('listCalls'),
    findCall: way('findCall'),
    prune: way('prune'),
    readSetting: way('readSetting'),
    writeSetting: way('writeSetting'),
    backup: way('backup'),
  };
}

export function answersOf(way: Way<AnswerStore>): AnswerStore {
  return {
    claim: way('claim'),
    renew: way('renew'),
    keep: way('keep'),
    release: way('release'),
    releaseAll: way('releaseAll'),
    sweep: way('sweep'),
  };
}
