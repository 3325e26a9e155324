// Tool get_request: returns one captured request with headers and bodies.
import * as z from 'zod';
import { text, tunnelArgument } from '../arguments.ts';
import { UNTRUSTED_WARNING, untrusted, wholeRequest } from '../captured.ts';
import { defineTool } from '../tool.ts';

export const requestArgument = text('The id of a request (req_…), from list_requests or wait_for_request.');

export const getRequest = defineTool({
  name: 'get_request',
  title: 'Get a request',
  description: `Returns a captured request with the response of the local service: headers and the beginning of both bodies. Use it to see what a webhook sent and how the local service responded. Read-only and free. Old requests are dropped when new ones arrive, so an id can expire. ${UNTRUSTED_WARNING}`,
  input: z.strictObject({ tunnel: tunnelArgument, request_id: requestArgument }),
  output: z.object({ request: wholeRequest, untrusted }),
  run: async (host, { tunnel, request_id }, call) => ({
    request: await host.getRequest(tunnel, request_id, call),
    untrusted: true as const,
  }),
});
