// replay_request: a captured request is sent to the local service once more.
import { capturedRequest } from '@tunnel/contract';
import * as z from 'zod';
import { tunnelArgument } from '../arguments.ts';
import { defineTool } from '../tool.ts';
import { requestArgument } from './get-request.ts';

export const replayRequest = defineTool({
  name: 'replay_request',
  title: 'Replay a request',
  description:
    'Sends a kept request to the local service again, as it came, and reports the status of the new answer. The service handles it as a real one: what the request orders (a payment, a mail, a deletion) happens a second time. Use it to test a fix against the webhook that failed; do not use it on a service that others rely on unless you were asked to. The answer is kept as a request of its own: get_request with the new id shows it.',
  input: z.strictObject({ tunnel: tunnelArgument, request_id: requestArgument }),
  output: z.object({ request: capturedRequest.pick({ id: true, status: true, duration_ms: true }) }),
  run: async (host, { tunnel, request_id }, call) => ({
    request: await host.replayRequest(tunnel, request_id, call),
  }),
});
