import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PersonRecord, SessionRecord } from '../../src/store/people.ts';
import { day, march } from '../unit/store/call-rows.ts';
import { eachWith, type OpenStore } from './opened.ts';

const ana: PersonRecord = {
  id: `ana'; DROP TABLE people; -- ü`,
  name: 'Ana "ü"',
  roles: ['viewer'],
  leads: ['red'],
  teams: ['red', 'ü,"'],
  firstAt: march,
  seenAt: march,
};

function session(id: string, members: Partial<SessionRecord> = {}): SessionRecord {
  const times = { createdAt: march, seenAt: march, endsAt: march + day };
  return { id, origin: 'https://gateway.example', ...times, ...members };
}

const now = { now: march + 1, seenAfter: march - 1, limit: 10 };

export function peopleSuite(open: OpenStore): void {
  describe('people and sessions', () => {
    const opened = eachWith(open);

    it('keeps what the provider said last; the first sign-in and a revocation stay', async () => {
      const { people } = opened.store;
      assert.equal(await people.find(ana.id), undefined);
      assert.deepEqual(await people.signedIn(ana), ana);
      assert.equal(await people.setRevoked(ana.id, march + 5), true);
      assert.equal(await people.setRevoked('nobody', march), false);
      const later = {
        ...ana,
        name: 'A',
        roles: [],
        teams: [],
        firstAt: march + 9,
        seenAt: march + 9,
      };
      const kept = { ...later, firstAt: march, revokedAt: march + 5 };
      assert.deepEqual(await people.signedIn(later), kept);
      assert.deepEqual(await people.find(ana.id), kept);
      assert.equal(await people.setRevoked(ana.id, undefined), true);
      assert.equal((await people.find(ana.id))?.revokedAt, undefined);
    });

    it('lists people in portions, in the order of bytes', async () => {
      const { people } = opened.store;
      for (const id of ['b', 'Z', 'ä']) await people.signedIn({ ...ana, id });
      const first = await people.list(2, '');
      const rest = await people.list(2, 'b');
      assert.deepEqual(
        [...first, ...rest].map(({ id }) => id),
        ['Z', 'b', 'ä'],
      );
    });

    it('S11 finds a session with its person, and ends one or all of a person', async () => {
      const { people } = opened.store;
      await people.signedIn(ana);
      const own = session('s1', { person: ana.id, ip: '10.0.0.1' });
      const other = session('s2', { person: ana.id, createdAt: march + 1 });
      const token = session('s3', { tokenDigest: 'ab'.repeat(32) });
      for (const each of [own, other, token]) await people.openSession(each);
      assert.deepEqual(await people.session('s1'), { session: own, person: ana });
      assert.deepEqual(await people.session('s3'), { session: token });
      const ofAna = await people.sessions({ ...now, person: ana.id });
      assert.deepEqual(ofAna, [other, own]);
      assert.equal((await people.sessions(now)).length, 3);
      assert.deepEqual(await people.sessions({ ...now, limit: 1 }), [other]);
      assert.equal(await people.endSession('s3'), true);
      assert.equal(await people.endSession('s3'), false);
      assert.equal(await people.endSessionsOf(ana.id), 2);
      assert.equal(await people.session('s1'), undefined);
    });

    it('S11 a use only moves forward; what is over or too many is swept', async () => {
      const { people } = opened.store;
      for (let i = 0; i < 4; i++) {
        await people.openSession(session(`s${i}`, { createdAt: march + i }));
      }
      await people.openSession(session('over', { endsAt: march + 1 }));
      await people.openSession(session('idle', { seenAt: march - 5 }));
      await people.seenSession('s0', march + 7);
      await people.seenSession('s0', march + 3);
      assert.equal((await people.session('s0'))?.session.seenAt, march + 7);
      await people.sweepSessions(march + 1, march - 5, 3);
      const left = await people.sessions({ ...now, seenAfter: 0 });
      assert.deepEqual(
        left.map(({ id }) => id),
        ['s3', 's2', 's1'],
      );
    });
  });
}
