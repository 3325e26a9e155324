// Control sockets and inspectors of this user's running clients. A tunnel must not publish any of these addresses.
import type { OwnClients } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import type { Io } from '../io/io.ts';
import { askClient, NoAnswer } from './agent-client.ts';
import type { InspectorAnswer } from './answers.ts';
import { type FoundSocket, findSockets, isAgentSocketPath } from './socket-folders.ts';

type Surroundings = Pick<Io, 'env' | 'home' | 'clock'>;

export const ownClientsOf = (io: Surroundings): OwnClients => ({
  inspectorPorts: async () => {
    const others = findSockets(io).filter(({ pid }) => pid !== process.pid);
    const ports = await Promise.all(others.map((socket) => inspectorPortOf(socket, io)));
    return ports.flatMap((port) => port ?? []);
  },
  isAgentSocket: (path) => isAgentSocketPath(path, io),
});

/**
 * Returns the inspector port of a running client. Returns null if the client has no inspector or has stopped. Rejects with a Fault for a
 * client that does not respond, because its inspector could be on any port.
 */
const inspectorPortOf = async ({ pid, path }: FoundSocket, { clock }: Surroundings): Promise<number | null> => {
  try {
    const { inspect_url: url } = (await askClient(path, { path: '/inspector' }, clock)).json as InspectorAnswer;
    return url === null ? null : Number(new URL(url).port);
  } catch (error) {
    // A client of an older version responds with a Fault, because it has no `/inspector` path.
    if (error instanceof Fault || (error instanceof NoAnswer && error.isDead)) return null;
    throw new Fault('CLIENT_NO_ANSWER', { pid, reason: (error as Error).message });
  }
};
