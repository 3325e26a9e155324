// Joins of p2p tunnels that send no messages to clients. Used by tests only.
import { type Clock, createLogger } from '@tunnel/runtime';
import { Registry } from '../../routing/registry.ts';
import { PeerJoins } from './peer-joins.ts';

export const quietJoins = (clock: Clock): PeerJoins =>
  new PeerJoins({
    peersPerTunnel: 100,
    tunnels: new Registry(),
    tell: () => {},
    clock,
    logger: createLogger({ level: 'silent', format: 'json' }),
  });
