// The OpenAPI document of the edge's REST: the descriptions of its routes, each with a name and a tag.
import type { OpenAPIHono } from '@hono/zod-openapi';
import { operationIdOf } from '@tunnel/http-shell';
import type { RestEnv } from './rest-context.ts';

const DESCRIPTION = `The tunnels of one edge, their requests, groups and certificates, as they are now.

Send an API key, or the admin token of the edge, as \`Authorization: Bearer <KEY>\`. A key sees what belongs to its account.
Every refusal is an Error: \`error\` for people, \`code\` for programs, \`request_id\` for reports.`;

/** By the segment of a path behind /api; requests, flows and the like of a tunnel are of the tunnel. */
const TAGS: Readonly<Record<string, string>> = {
  status: 'The edge itself.',
  tunnels: 'Tunnels, with their requests, flows, peers and rules.',
  regions: 'Regions that this edge knows.',
  groups: 'Groups of tunnels, and their health.',
  connections: 'How many connections there are, and how many there may be.',
  certificates: 'Certificates, for the operator.',
};

interface Operation {
  operationId?: string;
  tags?: string[];
}

export const edgeDocument = (app: OpenAPIHono<RestEnv>, version: string) => {
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      ...{ title: 'Edge REST', version, description: DESCRIPTION },
      license: { name: 'Apache License 2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: [{ url: '/' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
  });
  for (const [path, methods] of Object.entries(document.paths ?? {})) {
    for (const [method, operation] of Object.entries(methods as Record<string, Operation>)) {
      operation.operationId ??= operationIdOf(method, path);
      operation.tags ??= [path.split('/')[2] ?? ''];
    }
  }
  return document;
};
