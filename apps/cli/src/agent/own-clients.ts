// Where the clients of this user can be looked at and controlled: places that no tunnel may lead to.
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

/** null: the client has no inspector, or is gone. Rejects with a Fault for a client that does not answer, because its inspector could be anywhere. */
const inspectorPortOf = async ({ pid, path }: FoundSocket, { clock }: Surroundings): Promise<number | null> => {
  try {
    const { inspect_url: url } = (await askClient(path, { path: '/inspector' }, clock)).json as InspectorAnswer;
    return url === null ? null : Number(new URL(url).port);
  } catch (error) {
    // Clients of an older version do not know the question.
    if (error instanceof Fault || (error instanceof NoAnswer && error.isDead)) return null;
    throw new Fault('CLIENT_NO_ANSWER', { pid, reason: (error as Error).message });
  }
};
