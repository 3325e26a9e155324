// Whether an edge takes the key: connects once, opens nothing, and says why not.
import { Fault } from '@tunnel/errors';
import type { ConnectionSettings } from '../config/settings.ts';
import { EXIT, exitCodeOf } from '../io/exit-codes.ts';
import { type Io, VERSION } from '../io/io.ts';

export type TriedConnection =
  | { readonly state: 'accepted' }
  /** Asking again gives the same answer: the edge does not want this key. */
  | { readonly state: 'refused'; readonly fault: Fault }
  /** `reason`: why the first try failed, when there would have been others. */
  | { readonly state: 'unreachable'; readonly fault: Fault; readonly reason: string };

export const tryConnection = async (settings: ConnectionSettings, io: Io): Promise<TriedConnection> => {
  const giveUp = new AbortController();
  let reason = '';
  // A try is no client: it takes over no session of one.
  const { stateDir: _, ...connection } = settings;
  try {
    const client = await io.connect({
      ...connection,
      agent: `tunnel/${VERSION} node/${process.versions.node}`,
      clock: io.clock,
      signal: giveUp.signal,
      onStatus: (event) => {
        if (event.type !== 'reconnecting') return;
        // One try is an answer; a client that is to run would go on.
        reason = event.reason;
        giveUp.abort();
      },
    });
    await client.close();
    return { state: 'accepted' };
  } catch (error) {
    const fault = Fault.from(error);
    return exitCodeOf(fault) === EXIT.keyRefused
      ? { state: 'refused', fault }
      : { state: 'unreachable', fault, reason };
  }
};
