// Runs one tool call: prepares the call context, limits the size of the result, and converts every error into a fault.
import type { ServerContext } from '@modelcontextprotocol/server';
import { Fault } from '@tunnel/errors';
import { boundedOutput } from './results.ts';
import type { TimedCall, Tool, ToolClock, ToolOutput } from './tool.ts';
import type { ToolHost, ToolName } from './tool-host.ts';

/** Outcome of a tool call, for logging. */
export interface ToolOutcome {
  readonly tool: ToolName;
  /** `refused` if the caller caused the failure (invalid arguments, unknown tunnel, disconnect), `error` if Hatchway did. */
  readonly outcome: 'ok' | 'error' | 'refused';
  /** Parsed arguments. Null if the arguments were invalid. */
  readonly input: Readonly<Record<string, unknown>> | null;
  /** Error of the call. Null on success. */
  readonly fault: Fault | null;
}

/**
 * Makes the context of a tool call from an MCP request. The signal aborts when the caller cancels. Progress is sent only if the caller
 * supplied a progress token.
 */
export const timeCall = ({ mcpReq }: ServerContext, clock: ToolClock): TimedCall => ({
  clock,
  signal: mcpReq.signal,
  progress: (done, total, text) => {
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken === undefined || mcpReq.signal.aborted) return;
    const params = { progressToken, progress: done, total, message: text };
    // The notification fails if the caller has disconnected meanwhile, which is harmless.
    mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {});
  },
});

/** Calls a tool. Returns an output within the size limit, or a fault. Never throws. */
export const callTool = async (
  tool: Tool,
  given: unknown,
  host: ToolHost,
  call: TimedCall,
  onCall: ((outcome: ToolOutcome) => void) | undefined,
): Promise<ToolOutput | Fault> => {
  let input: ToolOutcome['input'] = null;
  try {
    input = tool.read(given);
    const output = boundedOutput(await tool.run(host, input, call), tool.list);
    onCall?.({ tool: tool.name, outcome: 'ok', input, fault: null });
    return output;
  } catch (error) {
    // After an abort, the error of the host does not matter, because the caller no longer waits for the result.
    const fault = call.signal.aborted ? new Fault('API_CALLER_GONE', {}, { cause: error }) : Fault.from(error);
    onCall?.({ tool: tool.name, outcome: fault.status < 500 ? 'refused' : 'error', input, fault });
    return fault;
  }
};
