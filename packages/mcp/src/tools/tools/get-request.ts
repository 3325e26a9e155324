// get_request: one captured request with its headers and bodies.
import * as z from 'zod';
import { text, tunnelArgument } from '../arguments.ts';
import { UNTRUSTED_WARNING, untrusted, wholeRequest } from '../captured.ts';
import { defineTool } from '../tool.ts';

export const requestArgument = text('The id of a request (req_…), as list_requests and wait_for_request give it.');

export const getRequest = defineTool({
  name: 'get_request',
  title: 'Get a request',
  description: `Shows one kept request whole: headers and the beginning of the bodies, both of the request and of the answer of the local service. Reads only, costs nothing. Use it to see what a webhook sent and what the local service answered. Old requests give way to new ones, so an id may be gone. ${UNTRUSTED_WARNING}`,
  input: z.strictObject({ tunnel: tunnelArgument, request_id: requestArgument }),
  output: z.object({ request: wholeRequest, untrusted }),
  run: async (host, { tunnel, request_id }, call) => ({
    request: await host.getRequest(tunnel, request_id, call),
    untrusted: true as const,
  }),
});
