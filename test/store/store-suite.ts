/** One suite, every store (style.md, tests 6). */
import { describe } from 'node:test';
import { auditSuite } from './audit-suite.ts';
import { callSuite } from './call-suite.ts';
import { keySuite } from './key-suite.ts';
import type { OpenStore } from './opened.ts';
import { openCallSuite } from './open-call-suite.ts';
import { pageSuite } from './page-suite.ts';
import { pruneSuite } from './prune-suite.ts';
import { sumSuite } from './sum-suite.ts';
import { usageSuite } from './usage-suite.ts';

/** @param open opens a new, empty store; the suite closes it. */
export function storeSuite(name: string, open: OpenStore): void {
  describe(`store ${name}`, () => {
    keySuite(open);
    auditSuite(open);
    callSuite(open);
    pageSuite(open);
    openCallSuite(open);
    usageSuite(open);
    pruneSuite(open);
    sumSuite(open);
  });
}
