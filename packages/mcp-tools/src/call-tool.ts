// One call of a tool: arguments are read, the host does it, and whatever went wrong becomes a fault that somebody is told of.
import { Fault } from '@tunnel/errors';
import { boundedOutput } from './results.ts';
import type { TimedCall, Tool, ToolOutput } from './tool.ts';
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
