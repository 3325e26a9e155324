// wait_for_request: answers with the next request that a tunnel serves, and tells meanwhile that it is waiting.
import * as z from 'zod';
import { methodArgument, pathArgument, tunnelArgument, wholeNumber } from '../arguments.ts';
import { UNTRUSTED_WARNING, untrusted, wholeRequest } from '../captured.ts';
import { defineTool, type TimedCall } from '../tool.ts';

/** how long a request is waited for unless it was said: what most hosts allow a call */
const TOOL_WAIT_DEFAULT_MS = 60_000;
/**
 * the longest wait: a person who has to press a button somewhere is back by then
 * @limit mcp: Tools: longest wait for a request | the tool returns without a request
 */
const TOOL_WAIT_MAX_MS = 300_000;
/** between two reports of progress: they may be 5 s apart, and timers are late on a busy machine */
const TOOL_PROGRESS_INTERVAL_MS = 4500;

const inSeconds = (ms: number): number => Math.round(ms / 100) / 10;

/** Runs `work`, and says every few seconds how long it has taken; nothing is left when it has ended, however it did. */
const reporting = async <T>(work: () => Promise<T>, withinMs: number, { clock, progress }: TimedCall): Promise<T> => {
  const began = clock.monotonic();
  const report = (): void => {
    const waited = inSeconds(clock.monotonic() - began);
    progress(waited, withinMs / 1000, `no request yet, ${Math.round(waited)} s of ${withinMs / 1000} s`);
  };
  report();
  const timer = clock.setInterval(report, TOOL_PROGRESS_INTERVAL_MS);
  try {
    return await work();
  } finally {
    timer.cancel();
  }
};

export const waitForRequest = defineTool({
  name: 'wait_for_request',
  title: 'Wait for a request',
  description: `Waits for the next matching request on an http tunnel and returns it in full, like get_request. Only requests that finish after the start of the call count. Call it, then let the user or the service send the webhook; if the webhook may have arrived already, check list_requests first. \`"request": null\` means a timeout: not an error, simply call again. Read-only and free. Many MCP hosts end a tool call after 60 s: make several short calls instead of one long call. ${UNTRUSTED_WARNING}`,
  input: z.strictObject({
    tunnel: tunnelArgument,
    method: methodArgument.optional(),
    path_contains: pathArgument.optional(),
    timeout_secs: wholeNumber('How long to wait, in seconds.', 1, TOOL_WAIT_MAX_MS / 1000).default(
      TOOL_WAIT_DEFAULT_MS / 1000,
    ),
  }),
  output: z.object({ request: wholeRequest.nullable(), waited_ms: z.int().min(0), untrusted }),
  run: async (host, { tunnel, timeout_secs, ...filter }, call) => {
    const began = call.clock.monotonic();
    const withinMs = timeout_secs * 1000;
    const request = await reporting(() => host.waitForRequest(tunnel, filter, withinMs, call), withinMs, call);
    return { request, waited_ms: Math.round(call.clock.monotonic() - began), untrusted: true as const };
  },
});
