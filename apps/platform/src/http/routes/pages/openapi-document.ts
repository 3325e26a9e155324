// Builds the OpenAPI document: the descriptions of the routes, completed by responses and headers common to all routes.
import type { ErrorCode, FaultValues } from '@tunnel/errors';
import { operationIdOf } from '@tunnel/http-shell';
import { LIMITS } from '../../../limits.ts';
import { mayBeRefused } from '../../admission/api-admission.ts';
import type { PlatformApp } from '../../shared/platform-env.ts';
import { BEARER, EXTENSIONS, errorExample } from '../../shared/route-parts.ts';

/** Version of the API, independent of the server's version. */
export const API_VERSION = '0.2.24';

const DESCRIPTION = `The Hatchway platform API: accounts, API keys, usage, the live state of groups (load-balanced tunnels), and pay-as-you-go billing.

Tunnels are opened by the client, with an API key from POST /keys.
Sign in with POST /auth/login and send the access token as \`Authorization: Bearer <ACCESS_TOKEN>\`. A token is valid for 15 minutes.

Every error response has the fields \`error\` (a readable message), \`code\` (a stable code for programs) and \`request_id\` (for problem reports). Every response has the request id in the \`x-request-id\` header.
Unknown fields in a request body are ignored. Unsupported methods get a 405 with an \`Allow\` header.
The version above is the version of the API. \`tunnel-server --version\` prints the version of the server.`;

const TAGS = [
  { name: 'auth', description: 'Accounts: sign up, verify an email address, sign in, reset a password.' },
  { name: 'keys', description: 'API keys for tunnel clients.' },
  { name: 'usage', description: 'Tunnels, requests and bytes: totals, daily usage and the tunnel log.' },
  { name: 'load balancing', description: 'The live state of groups.' },
  {
    name: 'billing',
    description: 'Pay as you go: the subscription, the spend limit and the payment processor.',
  },
  {
    name: 'oauth',
    description: 'The authorization server for apps using /mcp, and the connected apps.',
  },
  { name: 'health', description: 'Health checks.' },
  { name: 'documents', description: 'The API documentation.' },
  { name: EXTENSIONS, description: 'Extensions to the API specification.' },
];

const ANY_BODY: Readonly<Record<string, Answer>> = {
  413: refusal('The body is larger than 64 KiB.', 'API_BODY_TOO_LARGE', { limit: LIMITS.BODY_MAX_BYTES }),
};
const JSON_BODY: Readonly<Record<string, Answer>> = {
  400: refusal('The body is not valid.', 'API_BAD_REQUEST', {
    reason: 'the body is not valid JSON (position 12)',
  }),
  415: refusal('The body is not JSON.', 'API_MEDIA_TYPE'),
};
const ALWAYS: Readonly<Record<string, Answer>> = {
  500: refusal('An internal error occurred.', 'INTERNAL'),
  503: refusal('The database is not available; see Retry-After.', 'DATABASE_AWAY'),
};

const IN_TURN: Readonly<Record<string, Answer>> = {
  429: refusal('The account or the network exceeded its rate limit; see Retry-After.', 'API_ACCOUNT_LIMIT'),
};

/** Error codes for the examples of error responses without an example, by status. */
const CODE_OF_STATUS: Readonly<Record<string, ErrorCode>> = {
  400: 'API_BAD_REQUEST',
  401: 'ACCESS_TOKEN_INVALID',
  403: 'ACCOUNT_SUSPENDED',
  404: 'API_NOT_FOUND',
  429: 'AUTH_TOO_MANY_FAILURES',
};

const HEADERS = {
  'x-request-id': {
    description: 'The request id: the id sent by the caller if valid, else a generated id.',
    schema: { type: 'string', examples: ['req_4fK2mQ9xVbT7RsLpZ0aE'] },
  },
  'retry-after': { description: 'Seconds to wait.', schema: { type: 'integer', examples: [2] } },
};

function refusal(description: string, code: ErrorCode, values: FaultValues = {}): Answer {
  const schema = { $ref: '#/components/schemas/Error' };
  return { description, content: { 'application/json': { schema, example: errorExample(code, values) } } };
}

export const openApiDocument = (app: PlatformApp): ApiDocument => {
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Hatchway platform API',
      version: API_VERSION,
      description: DESCRIPTION,
      license: { name: 'Apache License 2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: [{ url: '/' }],
    tags: TAGS,
  }) as unknown as ApiDocument;
  document.components.headers = HEADERS;
  document.components.securitySchemes = { [BEARER]: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } };
  for (const placed of operationsOf(document)) complete(placed, document.components.schemas);
  return document;
};

const complete = ({ path, method, operation }: PlacedOperation, schemas: Record<string, Schema>): void => {
  operation.operationId ??= operationIdOf(method, path);
  const body = operation.requestBody;
  operation.responses = {
    ...ALWAYS,
    ...(mayBeRefused(path) ? IN_TURN : {}),
    ...(method === 'get' ? {} : ANY_BODY),
    ...(body?.content['application/json'] === undefined ? {} : JSON_BODY),
    ...operation.responses,
  };
  for (const media of Object.values(body?.content ?? {})) media.example ??= exampleOf(media.schema ?? {}, schemas);
  for (const parameter of operation.parameters ?? []) {
    parameter.example ??= exampleOf(parameter.schema ?? {}, schemas);
  }
  completeAnswers(operation, schemas);
};

const completeAnswers = (operation: Operation, schemas: Record<string, Schema>): void => {
  for (const [status, answer] of Object.entries(operation.responses)) {
    answer.headers = {
      'x-request-id': { $ref: '#/components/headers/x-request-id' },
      ...(status === '429' || status === '503' ? { 'retry-after': { $ref: '#/components/headers/retry-after' } } : {}),
      ...answer.headers,
    };
    const code = CODE_OF_STATUS[status];
    for (const media of Object.values(answer.content ?? {})) {
      media.example ??= code === undefined ? exampleOf(media.schema ?? {}, schemas) : errorExample(code);
    }
    // The HTML variant of a response gets a page as its example.
    const page = answer.content?.['text/html'];
    if (page !== undefined) page.example = PAGE_EXAMPLE;
  }
};

const PAGE_EXAMPLE = '<!doctype html><html lang="en"><title>…</title></html>';

const OF_FORMAT: Readonly<Record<string, string>> = {
  'date-time': '2030-01-31T12:00:00.000Z',
  date: '2030-01-31',
  email: 'ada@example.com',
  uuid: '0b6f3a54-6a0e-4f0e-9a53-0d7c3a1f5b11',
  uri: 'https://example.com/',
};

/** Maximum depth of a generated example. Ends the recursion in schemas that contain themselves. */
const DEEPEST = 12;

const REFERENCE = '#/components/schemas/';

/** Returns an example value for a schema: the schema's own example, or else a value of the right type. */
const exampleOf = (schema: Schema, schemas: Readonly<Record<string, Schema>>, depth = 0): unknown => {
  if (depth > DEEPEST) return null;
  const inner = (part: Schema): unknown => exampleOf(part, schemas, depth + 1);
  if (schema.$ref !== undefined) return inner(schemas[schema.$ref.slice(REFERENCE.length)] ?? {});
  const given = [schema.examples?.[0], schema.example, schema.default, schema.const, schema.enum?.[0]];
  const own = given.find((value) => value !== undefined);
  if (own !== undefined) return own;
  if (schema.allOf !== undefined) return Object.assign({}, ...schema.allOf.map(inner));
  const first = (schema.anyOf ?? schema.oneOf)?.[0];
  return first === undefined ? ofType(schema, inner) : inner(first);
};

const ofType = (schema: Schema, inner: (part: Schema) => unknown): unknown => {
  const [type] = [schema.type ?? 'object'].flat();
  if (type === 'string') return OF_FORMAT[schema.format ?? ''] ?? 'text';
  if (type === 'integer' || type === 'number') return schema.minimum ?? 0;
  if (type === 'boolean') return true;
  if (type === 'null') return null;
  if (type === 'array') return schema.items === undefined ? [] : [inner(schema.items)];
  return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, part]) => [name, inner(part)]));
};

/** The part of an OpenAPI 3.1 schema that is read or written here. */
interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  examples?: unknown[];
  example?: unknown;
  default?: unknown;
  const?: unknown;
  enum?: unknown[];
  minimum?: number;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
}

interface Media {
  schema?: Schema;
  example?: unknown;
}

interface Answer {
  description: string;
  headers?: Record<string, unknown>;
  content?: Record<string, Media>;
}

interface Parameter {
  schema?: Schema;
  example?: unknown;
}

interface Operation {
  operationId?: string;
  tags?: string[];
  summary?: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, Answer>;
}

export interface ApiDocument {
  openapi: string;
  info: { title: string; version: string; description?: string };
  tags?: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, Schema>;
    securitySchemes?: Record<string, { type: string; scheme: string; bearerFormat: string }>;
    headers?: Record<string, unknown>;
  };
}

interface PlacedOperation {
  readonly path: string;
  /** HTTP method in lower case. */
  readonly method: string;
  readonly operation: Operation;
}

export const operationsOf = ({ paths }: ApiDocument): PlacedOperation[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
