/** `/api/openapi.json`: the admin API described in OpenAPI 3.1, made from what its routes check. */
import { z } from 'zod';
import { isObject, type JsonObject } from '../json/value.ts';
import { tryParseObject } from '../json/parse.ts';
import { roles, routeRoles } from './people/roles.ts';
import type { AdminRoute, RouteAbout } from './route.ts';

const errorBody = z.strictObject({
  error: z.object({
    message: z.string(),
    field: z.string().optional().describe('The invalid member.'),
    problems: z.array(z.string()).optional(),
  }),
});

const errors = [
  ['400', 'The input is not valid.'],
  ['401', 'The admin token is missing or not valid.'],
  ['403', 'A session is not accepted from this origin, or the person has no role for this.'],
  ['404', 'Not found.'],
  ['503', 'The store is not available.'],
] as const;

/** The route itself, among the routes that it describes. */
export function openApiRoute(routes: readonly AdminRoute[], version: string): AdminRoute {
  const about: RouteAbout = {
    summary: 'This description.',
    answer: z.record(z.string(), z.unknown()),
  };
  const route: AdminRoute = {
    method: 'GET',
    path: '/api/openapi.json',
    about,
    run: () => ({ status: 200, body: openApi([...routes, route], version) }),
  };
  return route;
}

/** The whole document. */
function openApi(routes: readonly AdminRoute[], version: string): JsonObject {
  const paths: { [path: string]: { [method: string]: JsonObject } } = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Model Gateway: admin API',
      version,
      description:
        'Keys, limits, budgets, prices, usage and audit of one gateway. It has its own listener (admin_listen) and accepts the admin token or a session, never a key of the data plane. x-roles names the roles that may use a route; the admin token may use all.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ adminToken: [] }, { session: [] }],
    paths,
    components: {
      securitySchemes: {
        adminToken: { type: 'http', scheme: 'bearer' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-model-gateway-PORT',
          description:
            'Cookie of POST /api/session or of a sign-in by OpenID Connect. Changes also need the header x-model-gateway-csrf: 1.',
        },
      },
      schemas: { Error: schemaOf(errorBody, 'output') },
    },
  };
}

function operation({ method, path, about }: AdminRoute): JsonObject {
  if (about === undefined) return { responses: { 200: { description: 'Not described.' } } };
  const { summary, query, body, answer, csv, status = 200 } = about;
  const failures = errors.map(([code, description]) => [
    code,
    { description, content: jsonOf({ $ref: '#/components/schemas/Error' }) },
  ]);
  return {
    summary,
    operationId: operationId(method, path),
    'x-roles': [...rolesShown(method, path)],
    parameters: [
      ...[...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
        name,
        in: 'path',
        required: true,
        schema: { type: 'string' },
      })),
      ...queryParameters(query),
    ],
    ...(body === undefined ? {} : { requestBody: requestBody(body) }),
    responses: {
      [String(status)]: {
        description: 'Done.',
        content: {
          ...jsonOf(schemaOf(answer, 'output')),
          ...(csv === true ? { 'text/csv': { schema: { type: 'string' } } } : {}),
        },
      },
      ...Object.fromEntries(failures),
    },
  };
}

/** Empty: no sign-in needed. */
function rolesShown(method: string, path: string): readonly string[] {
  const allowed = routeRoles[`${method} ${path}`] ?? roles.slice(0, 1);
  return allowed === 'anyone' ? [] : allowed;
}

/** `postApiKeysIdRevoke` */
function operationId(method: string, path: string): string {
  const words = path.split(/[^A-Za-z]+/).filter((word) => word !== '');
  return [
    method.toLowerCase(),
    ...words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)),
  ].join('');
}

function queryParameters(query: z.ZodObject | undefined): readonly JsonObject[] {
  if (query === undefined) return [];
  const { properties, required } = schemaOf(query, 'input');
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  return Object.entries(isObject(properties) ? properties : {}).map(([name, schema]) => ({
    name,
    in: 'query',
    required: needed.includes(name),
    schema: schema ?? {},
  }));
}

function requestBody(body: z.ZodType): JsonObject {
  const schema = schemaOf(body, 'input');
  return { required: !body.safeParse(undefined).success, content: jsonOf(schema) };
}

function jsonOf(schema: JsonObject): JsonObject {
  return { 'application/json': { schema } };
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonObject {
  const { $schema: _, ...made } = z.toJSONSchema(schema, { io, target: 'draft-2020-12' });
  // The library's type names members that JSON has not; what it makes is plain JSON.
  return tryParseObject(JSON.stringify(made)) ?? {};
}
