/** Roles on every route of the admin API. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { adminRoutes } from '../../src/admin/handler.ts';
import { hasRole, type Role, roles, rolesFor, routeRoles } from '../../src/admin/people/roles.ts';
import { isObject } from '../../src/json/value.ts';
import { adminRig, errorOf, listOf, textOf } from '../unit/admin/admin-rig.ts';
import { signedInAs, type SignedIn } from './signed-in.ts';

const people = {
  owner: { id: 'olga', roles: ['owner'] },
  operator: { id: 'oscar', roles: ['operator'] },
  viewer: { id: 'vera', roles: ['viewer'] },
  'team-lead': { id: 'lea', leads: ['red'] },
  member: { id: 'max', teams: ['red'] },
} as const satisfies { readonly [R in Role]: object };

const metrics = { opens: () => false, text: async () => 'metric 1\n' };

it('each route has a row in the table of roles, and each row a route', async (t) => {
  const rig = await adminRig(t);
  const routes = adminRoutes(rig.deps).map(({ method, path }) => `${method} ${path}`);
  assert.deepEqual(
    [...routes, 'GET /metrics'].toSorted(),
    Object.keys(routeRoles).toSorted(),
    'give a new route a row in src/admin/people/roles.ts',
  );
  assert.deepEqual(rolesFor('GET', '/api/forgotten'), ['owner'], 'a forgotten one is closed');
});

it('all roles × all routes: a role that the table lacks gets 403, any other is let in', async (t) => {
  const rig = await adminRig(t, {}, undefined, { metrics });
  const routes = adminRoutes(rig.deps).filter(({ path }) => path !== '/api/session');
  let refused = 0;
  for (const role of roles) {
    for (const { method, path } of [...routes, { method: 'GET', path: '/metrics' } as const]) {
      // Some routes end a person or a session.
      const who = await signedInAs(rig, people[role]);
      const at = path.replace(':id', 'nothing1').replace(':name', 'nobody');
      const answer = await who.ask(at, { method, ...(method === 'GET' ? {} : { body: {} }) });
      const route = `${role} ${method} ${path}`;
      if (rolesFor(method, path).some((each) => allRoles[role].includes(each))) {
        assert.notEqual(answer.status, 403, route);
        assert.notEqual(answer.status, 401, route);
      } else {
        refused += 1;
        assert.equal(answer.status, 403, route);
        assert.match(textOf(errorOf(answer), 'message'), /is for the roles owner/, route);
      }
    }
  }
  assert.ok(refused > 50, String(refused));
});

/** The lead of a team is a member, too. */
const allRoles: { readonly [R in Role]: readonly Role[] } = {
  owner: ['owner'],
  operator: ['operator'],
  viewer: ['viewer'],
  'team-lead': ['team-lead', 'member'],
  member: ['member'],
};

it('only an owner learns which addresses there are besides', async (t) => {
  const rig = await adminRig(t);
  const max = await signedInAs(rig, people.member);
  for (const path of ['/api/nothing', '/api/playground/files', '/api/explain/x']) {
    assert.equal((await max.ask(path, { method: 'POST', body: {} })).status, 404, path);
  }
  assert.equal((await max.ask('/metrics/x')).status, 404);
});

it('the OpenAPI document names the roles of each route', async (t) => {
  const rig = await adminRig(t);
  const { paths } = (await rig.ask('/api/openapi.json')).body;
  const get = (path: string, method: string): unknown => {
    const operations = isObject(paths) ? paths[path] : undefined;
    const operation = isObject(operations) ? operations[method] : undefined;
    return isObject(operation) ? operation['x-roles'] : undefined;
  };
  assert.deepEqual(get('/api/reload', 'post'), ['owner', 'operator']);
  assert.deepEqual(get('/api/keys', 'get'), [...roles]);
  assert.deepEqual(get('/api/session', 'post'), []);
});

it('S24 the audit log names the person', async (t) => {
  const rig = await adminRig(t);
  const oscar = await signedInAs(rig, people.operator);
  assert.equal(
    (await oscar.ask('/api/teams/red', { method: 'PUT', body: { rpm: 5 } })).status,
    200,
  );
  const [entry] = listOf((await rig.ask('/api/audit')).body, 'entries');
  assert.deepEqual([entry?.['actor'], entry?.['action']], ['person:oscar', 'team.set']);
});

it('S11 an owner lists and ends all sessions, others their own', async (t) => {
  const rig = await adminRig(t);
  const olga = await signedInAs(rig, people.owner);
  const max = await signedInAs(rig, people.member);
  const elsewhere = await signedInAs(rig, people.member);
  const listed = async (who: SignedIn): Promise<readonly unknown[]> =>
    listOf((await who.ask('/api/sessions')).body, 'sessions').map(({ person }) => person);
  assert.deepEqual(await listed(max), ['max', 'max']);
  assert.deepEqual((await listed(olga)).toSorted(), ['max', 'max', 'olga']);
  const path = (who: SignedIn): string => `/api/sessions/${who.sessionId}`;
  assert.equal((await max.ask(path(olga), { method: 'DELETE' })).status, 404);
  assert.equal((await max.ask(path(elsewhere), { method: 'DELETE' })).status, 200);
  assert.equal((await elsewhere.ask('/api/models')).status, 401);
  assert.equal((await olga.ask(path(max), { method: 'DELETE' })).status, 200);
  assert.equal((await max.ask('/api/models')).status, 401);
  assert.equal((await olga.ask('/api/models')).status, 200);
  const [entry] = listOf((await rig.ask('/api/audit')).body, 'entries');
  assert.deepEqual([entry?.['actor'], entry?.['action']], ['person:olga', 'session.end']);
});

it('S6 S11 a revoked person has no session and no key any more, and may be restored', async (t) => {
  const rig = await adminRig(t);
  const max = await signedInAs(rig, people.member);
  await signedInAs(rig, people.member);
  const { id, key } = await rig.keys.create({ name: 'mine', models: ['*'], owner: 'max' });
  const other = await rig.keys.create({ name: 'other', models: ['*'], owner: 'lea' });
  const principal = rig.keys.authenticate(`Bearer ${key.reveal()}`, undefined);
  const revoked = await rig.ask('/api/people/max/revoke', { method: 'POST' });
  assert.deepEqual(
    [revoked.status, revoked.body['sessions_ended'], revoked.body['keys_revoked']],
    [200, 2, [id]],
  );
  assert.ok(principal.revoked(), 'running calls are cut');
  assert.throws(() => rig.keys.authenticate(`Bearer ${key.reveal()}`, undefined), {
    code: 'unauthenticated',
  });
  assert.equal(rig.keys.find(other.id)?.state, 'active');
  assert.equal((await max.ask('/api/models')).status, 401);
  const again = await signedInAs(rig, people.member);
  assert.equal((await again.ask('/api/models')).status, 401, 'no session holds for the revoked');
  const [entry] = listOf((await rig.ask('/api/audit')).body, 'entries');
  assert.deepEqual([entry?.['action'], entry?.['subject']], ['person.revoke', 'person:max']);
  assert.equal((await rig.ask('/api/people/max/restore', { method: 'POST' })).status, 200);
  const back = await signedInAs(rig, people.member);
  assert.equal((await back.ask('/api/models')).status, 200);
  assert.equal(rig.keys.find(id)?.state, 'revoked');
  assert.equal((await rig.ask('/api/people/nobody/revoke', { method: 'POST' })).status, 404);
});

it('a caller without a person, as commands and the admin token are, is an owner', () => {
  assert.ok(hasRole(undefined, 'owner'));
  assert.ok(!hasRole({ id: 'x', name: 'x', roles: [], leads: [], teams: [] }, ...roles));
});
