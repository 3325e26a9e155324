// One call of a tool: what goes with it, what the host makes of it, and the fault that whatever went wrong becomes.
import type { ServerContext } from '@modelcontextprotocol/server';
import { Fault } from '@tunnel/errors';
import { boundedOutput } from './results.ts';
import type { TimedCall, Tool, ToolClock, ToolOutput } from './tool.ts';
import type { ToolHost, ToolName } from './tool-host.ts';

/** What became of a call. */
export interface ToolOutcome {
  readonly tool: ToolName;
  /** `refused`: the caller's doing (its arguments, a tunnel that is not there, it hung up); `error`: ours. */
  readonly outcome: 'ok' | 'error' | 'refused';
  /** As it was read; null: the arguments could not be. */
  readonly input: Readonly<Record<string, unknown>> | null;
  /** null: it went well. */
  readonly fault: Fault | null;
}

/** As the protocol has it: an abort is the caller's, and progress is for those who sent a token for it. */
export const timeCall = ({ mcpReq }: ServerContext, clock: ToolClock): TimedCall => ({
  clock,
  signal: mcpReq.signal,
  progress: (done, total, text) => {
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken === undefined || mcpReq.signal.aborted) return;
    const params = { progressToken, progress: done, total, message: text };
    // Whoever has gone meanwhile needs no report.
    mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {});
  },
});

/** Within the bound of a result, or a fault: nothing else leaves. */
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
    // What a host throws when its work was cut off is the host's affair; nobody waits for the answer any more.
    const fault = call.signal.aborted ? new Fault('API_CALLER_GONE', {}, { cause: error }) : Fault.from(error);
    onCall?.({ tool: tool.name, outcome: fault.status < 500 ? 'refused' : 'error', input, fault });
    return fault;
  }
};
