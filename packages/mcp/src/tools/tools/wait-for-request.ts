// Tool wait_for_request: waits for the next request of a tunnel and returns the request. Reports progress while waiting.
import * as z from 'zod';
import { methodArgument, pathArgument, tunnelArgument, wholeNumber } from '../arguments.ts';
import { UNTRUSTED_WARNING, untrusted, wholeRequest } from '../captured.ts';
import { defineTool, type TimedCall } from '../tool.ts';

/** Default time to wait for a request. Equals the time that most MCP hosts allow for a call. */
const TOOL_WAIT_DEFAULT_MS = 60_000;
/**
 * Maximum time to wait for a request. Enough for a person who has to press a button elsewhere.
 * @limit mcp: Tools: longest wait for a request | the tool returns without a request
 */
const TOOL_WAIT_MAX_MS = 300_000;
/** Interval of progress reports. Reports must come at least every 5 s; the margin is for timers that fire late on a busy machine. */
const TOOL_PROGRESS_INTERVAL_MS = 4500;

const inSeconds = (ms: number): number => Math.round(ms / 100) / 10;

/** Runs `work` and reports the elapsed time every few seconds. The timer is always canceled at the end, even after an error. */
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
