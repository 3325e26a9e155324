// A single connection to an edge, to find out whether the edge accepts the API key. Opens no tunnels, and reports the reason of a
// failure.
import { Fault } from '@tunnel/errors';
import type { ConnectionSettings } from '../config/settings.ts';
import { EXIT, exitCodeOf } from '../io/exit-codes.ts';
import { type Io, VERSION } from '../io/io.ts';

export type TriedConnection =
  | { readonly state: 'accepted' }
  /** The edge rejects the API key. A retry would fail in the same way. */
  | { readonly state: 'refused'; readonly fault: Fault }
  /** No edge was reached. `reason` says why the first attempt failed, and is empty if the client would not have retried. */
  | { readonly state: 'unreachable'; readonly fault: Fault; readonly reason: string };

export const tryConnection = async (settings: ConnectionSettings, io: Io): Promise<TriedConnection> => {
  const giveUp = new AbortController();
  let reason = '';
  // Without the state folder, so that the attempt does not resume the session of a running client.
  const { stateDir: _, ...connection } = settings;
  try {
    const client = await io.connect({
      ...connection,
      agent: `tunnel/${VERSION} node/${process.versions.node}`,
      clock: io.clock,
      signal: giveUp.signal,
      onStatus: (event) => {
        if (event.type !== 'reconnecting') return;
        // A single attempt is enough here. A client with tunnels would keep retrying.
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
