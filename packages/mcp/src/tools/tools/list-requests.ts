// Tool list_requests: lists summaries of a tunnel's captured requests, newest first.
import * as z from 'zod';
import { methodArgument, pathArgument, tunnelArgument, wholeNumber } from '../arguments.ts';
import { lineOfRequest, requestLine, UNTRUSTED_WARNING, untrusted } from '../captured.ts';
import { defineTool } from '../tool.ts';
import type { RequestLine } from '../tool-host.ts';

/** Default number of requests in a result. */
const TOOL_REQUESTS_DEFAULT = 20;
/**
 * Maximum number of requests in a result. An edge stores only 200 requests per tunnel.
 * @limit mcp: Tools: requests per result | older requests are omitted
 */
const TOOL_REQUESTS_MAX = 50;

interface Filter {
  readonly method?: string | undefined;
  readonly status?: number | undefined;
  readonly path_contains?: string | undefined;
}

const passes = (request: RequestLine, { method, status, path_contains }: Filter): boolean =>
  (method === undefined || request.method.toUpperCase() === method) &&
  (status === undefined || request.status === status) &&
  (path_contains === undefined || request.path.includes(path_contains));

export const listRequests = defineTool({
  name: 'list_requests',
  title: 'List requests',
  description: `Lists the most recent HTTP requests captured by an http tunnel, newest first, with id, method, path, status and time. Use it to see which requests arrived and which failed. For headers and bodies, use get_request. To wait for a future request, use wait_for_request instead of polling. Read-only and free. ${UNTRUSTED_WARNING}`,
  input: z.strictObject({
    tunnel: tunnelArgument,
    limit: wholeNumber('Maximum number of requests.', 1, TOOL_REQUESTS_MAX).default(TOOL_REQUESTS_DEFAULT),
    method: methodArgument.optional(),
    status: wholeNumber('Only requests with this response status.', 100, 599).optional(),
    path_contains: pathArgument.optional(),
  }),
  output: z.object({ requests: z.array(requestLine), truncated: z.boolean(), untrusted }),
  list: 'requests',
  run: async (host, { tunnel, limit, ...filter }, call) => {
    const kept = await host.listRequests(tunnel, call);
    const found = kept.requests.filter((request) => passes(request, filter));
    return {
      requests: found.slice(0, limit).map(lineOfRequest),
      truncated: kept.truncated || found.length > limit,
      untrusted: true as const,
    };
  },
});
