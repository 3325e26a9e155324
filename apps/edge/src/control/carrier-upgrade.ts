// A carrier's way in: `Upgrade: tunnel-carrier/1` with a single-use token, answered with 101 and then frames.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { Fault } from '@tunnel/errors';
import { createCarrier } from '@tunnel/mux';
import { CARRIER_PROTOCOL, WIRE_LIMITS } from '@tunnel/protocol';
import type { SessionMuxes } from './session-muxes.ts';
import { refuseUpgrade } from './upgrade-answers.ts';

const SWITCHING = [
  'HTTP/1.1 101 Switching Protocols',
  'Connection: Upgrade',
  `Upgrade: ${CARRIER_PROTOCOL}`,
  '\r\n',
].join('\r\n');

export const upgradeCarrier = (muxes: SessionMuxes, request: IncomingMessage, socket: Socket, head: Buffer): void => {
  if (request.headers.upgrade?.toLowerCase() !== CARRIER_PROTOCOL) {
    return refuseUpgrade(socket, 426, `this path speaks ${CARRIER_PROTOCOL}`);
  }
  if (request.method !== 'GET') return refuseUpgrade(socket, 400, 'a carrier begins with GET');
  if (socket instanceof TLSSocket && socket.getProtocol() !== 'TLSv1.3') {
    return refuseUpgrade(socket, 426, 'carriers need TLS 1.3');
  }
  const token = /^Bearer ([\w-]{1,200})$/i.exec(request.headers.authorization ?? '')?.[1];
  const mux = token === undefined ? null : muxes.redeemToken(token);
  if (mux === null) return refuseUpgrade(socket, 401, new Fault('CARRIER_TOKEN_INVALID').message);
  if (!muxes.hasRoom(mux)) {
    const limit = WIRE_LIMITS.CARRIERS_PER_SESSION_MAX;
    return refuseUpgrade(socket, 429, new Fault('CARRIER_LIMIT', { limit }).message);
  }
  socket.write(SWITCHING);
  muxes.addCarrier(mux, createCarrier(socket, head));
};
