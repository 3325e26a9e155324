import { type ErrorCode, Fault } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { EXIT, exitCodeOf } from './exit-codes.ts';

it.each<[number, readonly ErrorCode[]]>([
  [EXIT.usage, ['CONFIG_PORT_TAKEN', 'CLIENT_USAGE', 'CLIENT_P2P_SECRET_SHORT', 'CLIENT_P2P_SECRET_MISSING']],
  [EXIT.keyRefused, ['AUTH_TOKEN_INVALID']],
  [EXIT.tunnelsRefused, ['TUNNEL_PORTS_EXHAUSTED', 'TUNNEL_PROTOCOL_OFF', 'GROUP_FIELDS_INVALID']],
  [EXIT.tunnelsRefused, ['P2P_NOT_FOUND', 'P2P_AWAY', 'P2P_SERVICE_MISMATCH', 'P2P_PEER_LIMIT', 'CLIENT_EDGE_TOO_OLD']],
  [EXIT.notReached, ['CLIENT_SERVER_UNREACHABLE']],
  [EXIT.accountClosed, ['ACCOUNT_PAST_DUE', 'SPEND_CAP_REACHED']],
  [EXIT.unexpected, ['INTERNAL']],
])('exit code %i belongs to the errors %j', (exitCode, codes) => {
  expect(codes.map((code) => exitCodeOf(new Fault(code)))).toEqual(codes.map(() => exitCode));
});
