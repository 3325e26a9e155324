// Tool replay_request: sends a captured request to the local service again.
import { capturedRequest } from '@tunnel/contract';
import * as z from 'zod';
import { tunnelArgument } from '../arguments.ts';
import { defineTool } from '../tool.ts';
import { requestArgument } from './get-request.ts';

export const replayRequest = defineTool({
  name: 'replay_request',
  title: 'Replay a request',
  description:
    'Sends a captured request to the local service again, unchanged, and returns the new response status. Use it to test a fix against a failed webhook. The service processes the replay like a real request: side effects (a payment, an email, a deletion) happen again. Do not replay to a service used by others unless asked to. The replay is captured as a new request: get_request with the new id returns the response.',
  input: z.strictObject({ tunnel: tunnelArgument, request_id: requestArgument }),
  output: z.object({ request: capturedRequest.pick({ id: true, status: true, duration_ms: true }) }),
  run: async (host, { tunnel, request_id }, call) => ({
    request: await host.replayRequest(tunnel, request_id, call),
  }),
});
