/** One suite, every store (style.md, tests 6). */
import { describe } from 'node:test';
import { answerSuite } from './answer-suite.ts';
import { contentSuite } from './content-suite.ts';
import { responseSuite } from './response-suite.ts';
import { auditSuite } from './audit-suite.ts';
import { callSuite } from './call-suite.ts';
import { failureSuite } from './failure-suite.ts';
import { keySuite } from './key-suite.ts';
import type { OpenStore } from './opened.ts';
import { openCallSuite } from './open-call-suite.ts';
import { pageSuite } from './page-suite.ts';
import { peopleSuite } from './people-suite.ts';
import { pruneSuite } from './prune-suite.ts';
import { seriesSuite } from './series-suite.ts';
import { sumSuite } from './sum-suite.ts';
import { usageSuite } from './usage-suite.ts';
import { withinSuite } from './within-suite.ts';

/**
 * @param open opens a new, empty store; the suite closes it.
 * @param kind whether several gateways write into it
 */
export function storeSuite(name: string, open: OpenStore, kind: 'own' | 'shared' = 'own'): void {
  describe(`store ${name}`, () => {
    keySuite(open);
    auditSuite(open);
    callSuite(open);
    pageSuite(open);
    openCallSuite(open, kind);
    usageSuite(open);
    seriesSuite(open);
    failureSuite(open);
    withinSuite(open);
    pruneSuite(open);
    sumSuite(open);
    answerSuite(open);
    contentSuite(open);
    responseSuite(open);
    peopleSuite(open);
  });
}
